"""Faults of the files of backups, and of the pages that are written to them; those of checkpoints are in
differential_mutants.py."""
from edits import Mutant, expression, raw
from sources import BACKUP_FILES, PAGE_SPACE

BACKUP_MUTANTS = [
    Mutant("pages_added_clean", "a new page counts as in one copy of the backup",
           [expression(PAGE_SPACE, "kDirty[0] | kDirty[1]", "kDirty[0]")],
           test="FuzzyCheckpointTest.APageThatIsTakenDuringACheckpointIsInTheNextOnes"),
    Mutant("backup_read_beyond_its_count", "pages are read that the checkpoint did not count",
           [raw(BACKUP_FILES, "count_((uint64_t{reader.pages_by_table_[table.value()]} + reader.parts() - 1 - part) / "
                "reader.parts()),",
                "count_({on} ? device_.SizeBytes() / frame_bytes_\n"
                "                  : (uint64_t{{reader.pages_by_table_[table.value()]}} + reader.parts() - 1 - part) / "
                "reader.parts()),")],
           test="BackupFilesTest.WhatLiesBehindTheLastPageIsNotRead"),
    Mutant("backup_newer_pages_taken", "a page of a later checkpoint than the anchor's is taken",
           [expression(BACKUP_FILES, "found.number > reader_.number_", "false")],
           test="BackupFilesTest.AFrameOfAnythingElseIsRefusedWithItsPlace"),
]
