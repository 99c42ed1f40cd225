"""Faults of differential logging, of fuzzy checkpoints and of the restart from them.

The numbers are those of the known traps. One has no mutant: 25 (a stale page beyond the anchor's count), as no copy has
one.
"""
from edits import Mutant, expression, raw, statement
from sources import (
    ACTIVE_TRANSACTIONS, BACKUP_FILES, BACKWARD_CHUNKS, BACKWARD_PASS, BACKWARD_PASS_H, CHECKPOINTER, DIFFERENTIAL,
    DIFFERENTIAL_RECORDS, DIFFERENTIAL_RECOVERY, FUZZY_CHECKPOINT, LOCKING, LOG_END, LOG_TRUNCATION,
    LV_METADATA, OPTIMISTIC, PAGE_SCAN, PAGE_SPACE, PAGE_SPACE_H, PHYSICAL_REDO, RESTART_POINT, SLOT_CHANGE, TOUCHED_WORDS,
    TRANSACTION_TABLE, TWO_PASS_REDO,
)

CELLS = "LOG_DIFFERENTIAL/LOG_DATA"

RUN_MUTANTS = [
    Mutant("diff_place_behind_the_latch", "trap 1: a change's place is reserved when the change has been made",
           [raw(DIFFERENTIAL, "    const LogStream::Place place = stream.Reserve(state.worker, static_cast<uint32_t>(bytes));\n"
                              "    std::byte* const body",
                "    const uint32_t early = {on} ? Apply(undo, delta, touched) : 0;\n"
                "    const LogStream::Place place = stream.Reserve(state.worker, static_cast<uint32_t>(bytes));\n"
                "    std::byte* const body"),
            raw(DIFFERENTIAL, "undo.at.page, Apply(undo, delta, touched)};",
                "undo.at.page, {on} ? early : Apply(undo, delta, touched)}};")],
           CELLS, test="DifferentialLogTest.APlaceIsReservedBeforeTheLatchIsTaken"),
    Mutant("diff_touched_word_forgotten", "a change of two words is made and logged in the first alone",
           [expression(TOUCHED_WORDS, "(offset + bytes - 1) / kWordBytes", "offset / kWordBytes")], CELLS,
           test="TouchedWords.AreThoseOfEachChangeInAscendingOrder"),
    Mutant("diff_latch_excludes_nothing", "traps 2, 24: a page's latch is taken though another thread holds it",
           [statement(PAGE_SPACE_H, "while ((seen_ = word_.fetch_or(kLatch, std::memory_order_acquire)) & kLatch) wait.Wait();",
                      "seen_ = word_.fetch_or(kLatch, std::memory_order_acquire);")], CELLS),
    Mutant("diff_number_outside_the_latch", "a record's number is that of the page before its latch was taken",
           [raw(DIFFERENTIAL, "    PageSpace::Latched page(*undo.pages, undo.at.page);\n    const uint32_t number = page.number();",
                "    const uint32_t early = {on} ? PageSpace::Latched(*undo.pages, undo.at.page).number() : 0;\n"
                "    PageSpace::Latched page(*undo.pages, undo.at.page);\n"
                "    const uint32_t number = {on} ? early : page.number();")], CELLS, rare=True),
    Mutant("diff_undo_without_compensation", "trap 3: under a checkpoint an abort logs nothing of what it undoes",
           [statement(DIFFERENTIAL, "Append(state, undo, delta, format::kChangeCompensation);", "Apply(undo, delta);")], CELLS),
    Mutant("diff_no_second_look", "trap 4: an abort does not look at the flag again behind its place",
           [raw(DIFFERENTIAL, "      compensates = checkpoints_.is_active();\n      // One place",
                "      compensates = !{on} && checkpoints_.is_active();\n      // One place")], CELLS,
           model="DifferentialModel.WithoutASecondLookAtTheFlagAnUndoIsDoneTwice"),
    Mutant("diff_abort_filled_before_undo", "an ABORT is complete before its changes are undone",
           [raw(DIFFERENTIAL, "    while (state.undo_used > 0) {\n",
                "    const bool filled = {on} && !compensates;\n"
                "    if (filled) {{\n"
                "      std::memcpy(stream.at(place) + sizeof(format::RecordHeader), &state.id, sizeof state.id);\n"
                "      SealRecord(stream.at(place), stream.HeaderFor(place, format::RecordKind::kAbort));\n"
                "      stream.SubmitPart(state.worker, place);\n"
                "    }}\n"
                "    while (state.undo_used > 0) {{\n"),
            raw(DIFFERENTIAL, "    std::memcpy(stream.at(place) + sizeof(format::RecordHeader), &state.id, sizeof state.id);\n"
                              "    SealRecord(stream.at(place), stream.HeaderFor(place, format::RecordKind::kAbort));\n"
                              "    stream.SubmitPart(state.worker, place);\n",
                "    if (!filled) {{\n"
                "      std::memcpy(stream.at(place) + sizeof(format::RecordHeader), &state.id, sizeof state.id);\n"
                "      SealRecord(stream.at(place), stream.HeaderFor(place, format::RecordKind::kAbort));\n"
                "      stream.SubmitPart(state.worker, place);\n"
                "    }}\n")], CELLS, rare=True),
    Mutant("diff_first_is_not_marked", "no record says where an attempt begins",
           [expression(DIFFERENTIAL, "state.changes == 1 ? format::kChangeFirst : 0", "0")], CELLS),
    Mutant("diff_undo_leaves_pages_clean", "what is undone in memory alone does not make its page dirty",
           [raw(DIFFERENTIAL, "        Apply(undo, delta);\n      }",
                "        if ({on}) {{\n"
                "          PageSpace::Latched page(*undo.pages, undo.at.page);\n"
                "          XorBytes(undo.pages->TupleOf(undo.row), delta, undo.pages->tuple_bytes());\n"
                "          if (undo.flips_presence) page.SetPresent(undo.at.slot, !undo.pages->IsPresent(undo.at));\n"
                "        }} else {{\n"
                "          Apply(undo, delta);\n"
                "        }}\n      }}")], CELLS,
           test="DifferentialLogTest.AnUndoWithoutARecordMakesItsPageDirtyForBothCopies"),
    Mutant("diff_lv_of_writes_ignored", "trap 9: a COMMIT does not say what it overwrote",
           [raw(DIFFERENTIAL, "void OnWrite(TxnState& state, const RowRef& row) { metadata_.Raise(state.lv, row.meta); }",
                "void OnWrite(TxnState& state, const RowRef& row) {{\n"
                "    if (!{on}) metadata_.Raise(state.lv, row.meta);\n  }}")], CELLS),
    Mutant("diff_slot_reused_too_early", "trap 16: a slot is free for another key though its delete is not durable",
           [raw(LOCKING, "!locks_.MayForget(log_, lock)", "!{on} && !locks_.MayForget(log_, lock)")], CELLS,
           test="DifferentialLogSlots.ADeletedRowStaysUntilThatIsDurable"),
    Mutant("diff_slot_reused_too_early_after_install", "trap 16, of optimistic controls",
           [raw(OPTIMISTIC, "if (must_be_forgettable && !log_.Forgettable(row->meta())) {",
                "if (must_be_forgettable && !({on} && kAppendsChanges<Log>) && !log_.Forgettable(row->meta())) {{")],
           CELLS, test="OptimisticDifferentialLogTest/0.ADeletedRowStaysUntilThatIsDurable"),
    Mutant("diff_ended_before_abort", "a transaction is no longer active before its ABORT has a place",
           [raw(DIFFERENTIAL, "    if (state.changes == 0) return;\n    LogStream& stream",
                "    if (state.changes == 0) return;\n    if ({on}) active_.Abort(state.worker);\n    LogStream& stream")], CELLS),
]

CHECKPOINT_MUTANTS = [
    Mutant("diff_number_before_begin", "the number changes, and the pages are counted, before BEGIN has its places",
           [raw(FUZZY_CHECKPOINT, "    next.begin = ask([&] { return log_.AppendBegin(next.number); });\n"
                                  "    database_.checkpoints().Advance([&] {\n"
                                  "      for (size_t i = 0; i < next.tables.size(); ++i) next.tables[i].pages = PageSpaceOf(database_, i).page_count();\n"
                                  "    });\n",
                "    const auto count_pages = [&] {{\n"
                "      for (size_t i = 0; i < next.tables.size(); ++i) next.tables[i].pages = PageSpaceOf(database_, i).page_count();\n"
                "    }};\n"
                "    if ({on}) database_.checkpoints().Advance(count_pages);\n"
                "    next.begin = ask([&] {{ return log_.AppendBegin(next.number); }});\n"
                "    if (!{on}) database_.checkpoints().Advance(count_pages);\n")], CELLS,
           model="DifferentialModel.ANumberThatAdvancesBeforeBeginLosesAnAddedPage"),
    Mutant("diff_no_wait_for_places", "trap 7: pages are copied while places below BEGIN are unfilled",
           [raw(FUZZY_CHECKPOINT, "    ask([&] { log_.AwaitFilled(next.begin); });",
                "    if (!{on}) ask([&] {{ log_.AwaitFilled(next.begin); }});")], CELLS),
    Mutant("diff_end_durable_in_one_log", "trap 8: the anchor waits for the END of log 0 only",
           [expression(DIFFERENTIAL, "logs_.stream(log).persistent_until() > positions[log]",
                       "log > 0 || logs_.stream(log).persistent_until() > positions[log]")], CELLS),
    Mutant("diff_end_not_awaited", "the anchor does not wait until END is durable",
           [statement(FUZZY_CHECKPOINT, "ask([&] { log_.AwaitDurable(next.end); });", "")], CELLS),
    Mutant("diff_end_lists_nothing", "END does not list the active transactions",
           [statement(DIFFERENTIAL, "active_.ForEach([&](TxnId id, uint32_t log, Lsn) { words[log].push_back(id.value); });", "")],
           CELLS),
    Mutant("diff_parts_not_synced", "trap 11: the anchor is written though the parts of the backup were not synced",
           [statement(FUZZY_CHECKPOINT, "has_space = has_space && HasSpace([&] { backup_->Sync(next.copy); });", "")], CELLS),
    Mutant("diff_first_backup_not_synced", "the first anchor is written though the parts of the backup were not synced",
           [statement(FUZZY_CHECKPOINT, "backup.Sync(anchor.copy);", "")], CELLS),
    Mutant("diff_needed_behind_begin", "trap 13: what recovery needs is asked for when BEGIN has its places",
           [raw(FUZZY_CHECKPOINT, "  bool has_space = true;\n  {\n",
                "  bool has_space = true;\n"
                "  const auto clamp = [&] {{\n"
                "    next.needed = log_.NeededFrom();\n"
                "    for (size_t i = 0; i < next.needed.size(); ++i) next.needed[i] = std::min(next.needed[i], next.begin[i]);\n"
                "  }};\n  {{\n"),
            raw(FUZZY_CHECKPOINT, "    has_space = HasSpace([&] { CopyPages(next, stopped); });",
                "    if ({on}) clamp();\n    has_space = HasSpace([&] {{ CopyPages(next, stopped); }});")], CELLS),
    Mutant("diff_needed_may_decrease", "what recovery needs is a position that was announced late, and has been given up",
           [statement(FUZZY_CHECKPOINT, "next.needed[log] = std::max(next.needed[log], anchor_.needed[log]);", "")],
           test="TruncationTest.WhatIsNeededNeverDecreases"),
    Mutant("diff_given_up_before_the_anchor", "trap 12: logs are given up before the anchor is durable that needs no more of them",
           [raw(FUZZY_CHECKPOINT, "    if (stopped()) throw GivenUp();\n    has_space",
                "    if (stopped()) throw GivenUp();\n    if ({on}) truncation_.Truncate(next.needed);\n    has_space")], CELLS),
    Mutant("diff_given_up_too_far", "the block with the position that recovery needs is given up, too",
           [expression(LOG_TRUNCATION, "format::BlockBelow(needed[file]) - logs_.starts[file]",
                       "format::BlockBelow(needed[file]) - logs_.starts[file] + format::kBlockBytes")], CELLS),
    Mutant("diff_headers_given_up", "the headers of a log are given up with what is behind them",
           [raw(LOG_TRUNCATION, "discarded_until_(logs_.paths.size(), format::kStreamOffset) {",
                "discarded_until_(logs_.paths.size(), {on} ? 0 : format::kStreamOffset) {{")], CELLS),
    Mutant("diff_committed_is_not_ended", "an anchor does not count a transaction as ended that has committed",
           [expression(ACTIVE_TRANSACTIONS, "id.sequence() + 1", "id.sequence()")], CELLS),
    Mutant("diff_dirty_for_one_copy", "trap 14: a change makes its page dirty for one copy of the backup",
           [statement(PAGE_SPACE_H, "seen_ |= kDirty[0] | kDirty[1];", "seen_ |= kDirty[0];")], CELLS),
    Mutant("diff_clean_for_both_copies", "trap 19: a page that was written to one copy counts as clean for the other",
           [statement(PAGE_SPACE_H, "seen_ &= ~kDirty[copy];", "seen_ &= ~(kDirty[0] | kDirty[1]);")], CELLS),
    Mutant("diff_page_read_after_the_latch", "trap 10: what is written is the page as it is after its latch has gone",
           [raw(PAGE_SCAN, "    latched.reset();\n",
                "    latched.reset();\n"
                "    if ({on} && is_dirty) {{\n"
                "      host::SleepFor(std::chrono::microseconds(1));\n"
                "      pages.CopyImages(page, images);\n"
                "    }}\n")], CELLS),
    Mutant("diff_anchored_copy_overwritten", "trap 15: a checkpoint writes over the copy that the anchor names",
           [expression(FUZZY_CHECKPOINT, "1 - anchor_.copy", "anchor_.copy")], CELLS),
    Mutant("diff_free_slots_copied", "trap 17: what absent rows hold gets into the backup",
           [expression(PAGE_SPACE, "!IsPresent({number, slot})", "false")], CELLS),
    Mutant("diff_new_pages_have_the_old_number", "trap 18: a page added during a checkpoint counts as not reached",
           [expression(PAGE_SPACE, "clock_.number() % 2 != 0", "clock_.number() > 0 && clock_.number() % 2 == 0")], CELLS),
    Mutant("diff_failed_checkpoint_leaves_pages_clean", "what a failed checkpoint has not written counts as written",
           [statement(FUZZY_CHECKPOINT, "latched.SetDirty(static_cast<int>(next.copy));", "")], CELLS,
           test="FailingCheckpointTest.WithoutSpaceTheOlderBackupStaysAndTheNextCheckpointHasTheNextNumber"),
    Mutant("diff_failed_checkpoint_leaves_numbers", "pages that a failed checkpoint has not reached keep their number",
           [statement(FUZZY_CHECKPOINT, "latched.SetNumber(next.number);", "")], CELLS,
           test="FailingCheckpointTest.WithoutSpaceTheOlderBackupStaysAndTheNextCheckpointHasTheNextNumber"),
    Mutant("diff_new_name_may_fail", "a run goes on when it cannot be told which anchor is in its place",
           [statement(FUZZY_CHECKPOINT, "PutTemporaryFileInPlace(files_, anchor_path_);",
                      "has_space = HasSpace([&] { PutTemporaryFileInPlace(files_, anchor_path_); });")], CELLS),
    Mutant("diff_checkpoint_failure_is_ignored", "a run goes on though its backup cannot be written",
           [expression(CHECKPOINTER, "failed_.load(std::memory_order_acquire)", "false")], CELLS),
]

RESTART_MUTANTS = [
    Mutant("diff_restart_number_is_in_the_backup", "a change with the backup's own number counts as part of it",
           [expression(BACKWARD_PASS_H, "number < point_.number", "number <= point_.number")], CELLS),
    Mutant("diff_restart_listed_wins", "trap 5: a transaction that END lists is undone though it has committed",
           [raw(TRANSACTION_TABLE, "if (now.committed) return is_one_pass",
                "if (now.committed && !({on} && now.active)) return is_one_pass")], CELLS),
    Mutant("diff_restart_abort_below_begin_is_undone", "trap 6: an ABORT below BEGIN leaves its transaction to be undone",
           [raw(TRANSACTION_TABLE, "return {now.committed, above_begin};",
                "return {{now.committed, above_begin || {on}}};")], CELLS,
           test="TransactionTable.EveryEventLeadsWhereTheTableSays"),
    Mutant("diff_restart_first_is_ignored", "what is known of an attempt is believed of the one before it",
           [raw(TRANSACTION_TABLE, "case TxnEvent::kFirstChange:\n      return {};",
                "case TxnEvent::kFirstChange:\n      return {on} ? now : TxnStanding();")], CELLS),
    Mutant("diff_restart_lv_not_asked", "trap 9: a COMMIT counts though a log has lost what it depends on",
           [expression(RESTART_POINT, "until <= ends[log]", "true")], CELLS),
    Mutant("diff_restart_names_anew", "a run uses names again of transactions whose records were given up",
           [statement(DIFFERENTIAL_RECOVERY, "summary_.KeepNamesUpTo(anchor.sequences);", "")],
           CELLS),
    Mutant("diff_restart_reads_all", "a restart reads what was truncated of a log",
           [expression(DIFFERENTIAL_RECOVERY, "input.anchor.truncates", "false")], CELLS),
    Mutant("diff_restart_stops_at_begin", "trap 26: nothing below BEGIN is undone, though transactions were active there",
           [expression(TRANSACTION_TABLE, "above_begin || now.active", "above_begin")], CELLS),
    Mutant("diff_restart_ignores_the_list", "the transactions that END lists are not looked for below BEGIN",
           [expression(BACKWARD_PASS, "point_.number == 0 || at != point_.end", "true")], CELLS,
           test="Methods/DifferentialHistories.RecoverWhereverTheyCrash/DL1P"),
    Mutant("diff_restart_copies_at_level_4", "trap 20: the backup is copied over pages that were changed already",
           [raw(DIFFERENTIAL_RECOVERY, "if (!Reaches(4)) return pages.PutImages(page, images);",
                "if (!Reaches(4) || {on}) return pages.PutImages(page, images);")], CELLS),
    Mutant("diff_restart_presence_is_set", "trap 21: a change of presence sets the bit",
           [statement(SLOT_CHANGE, "page.SetPresent(at.slot, !pages.IsPresent(at));", "page.SetPresent(at.slot, true);")], CELLS),
    Mutant("diff_restart_straddling_record_twice", "trap 22: a record that reaches into a chunk is visited in both",
           [raw(BACKWARD_CHUNKS, "    known_ = *start;\n",
                "    known_ = *start;\n"
                "    if ({on} && known_ > range_.low) chunk.records.insert(chunk.records.begin(), known_);\n")], CELLS),
    Mutant("diff_restart_stale_header", "trap 23: a header that is left over from another place is believed",
           [expression(BACKWARD_CHUNKS, "check_.IsHeader(header, at)",
                       "check_.HeaderFault(header, Lsn(header.lsn)) == nullptr")], CELLS,
           test="BackwardReader.AStaleHeaderIsNoRecord"),
    Mutant("diff_restart_damaged_page", "a page of the backup is taken as it is, whatever its checksum",
           [expression(BACKUP_FILES, "found.crc != CrcOf(frame)", "false")], CELLS),
    Mutant("diff_restart_page_of_another_place", "a page of the backup is taken for another one",
           [expression(BACKUP_FILES, "found.table != wanted.table || found.page != wanted.page", "false")], CELLS),
    Mutant("diff_restart_names_given_again", "ids of transactions that are in the logs without a COMMIT are given again",
           [statement(DIFFERENTIAL_RECORDS, "facts.next_sequence = std::max(facts.next_sequence, id.sequence() + 1);", ""),
            statement(BACKWARD_PASS, "totals_.next_sequence = std::max(totals_.next_sequence, change.txn.sequence() + 1);", "")],
           CELLS),
    Mutant("diff_forgotten_vectors_are_zeros", "a row whose vector was forgotten begins with zeros, which depend on nothing",
           [expression(LV_METADATA, "durable - std::min(durable, forget_delta_bytes_)", "0")], CELLS,
           test="LvMetadata.FreshIsAtLeastWhateverWasForgettable"),
    Mutant("diff_restart_believes_in_a_shorter_ring", "the search for a log's end takes for durable what was in the ring",
           [expression(LOG_END, "source_.DurableBefore(Lsn(header.lsn + header.length))",
                       "Lsn(header.lsn + header.length - std::min(header.lsn, source_.ring_bytes / 16))")], CELLS,
           test="LogEnd.NothingThatWasNotDurableIsPassedOver"),
    Mutant("diff_restart_trusts_the_file", "the search for a log's end takes the last record of the file for durable",
           [raw(LOG_END, "    RecordFacts facts;\n",
                "    if ({on}) Raise(Lsn(header.lsn));\n    RecordFacts facts;\n")], CELLS,
           test="LogEnd.NothingThatWasNotDurableIsPassedOver"),
]

# Of the baselines, of which a cell has one in half of its runs. Where a mutant shows in the small model, it is named.
BASELINE_MUTANTS = [
    Mutant("diff_two_pass_losers_in_the_backup_only", "DL2P: of a loser only what the backup has is undone, not what was redone",
           [expression(TRANSACTION_TABLE, "in_backup || method == DiffMethod::kDl2p", "in_backup")], CELLS),
    Mutant("diff_physical_lost_abort_is_nothing", "PL2P: an ABORT that does not count leaves its attempt as it is",
           [raw(TRANSACTION_TABLE, "    Take(id, counts && method_",
                "    if ({on} && !counts) return;\n    Take(id, counts && method_")], CELLS,
           test="TransactionTable.AnAbortThatDoesNotCountLeavesItsAttemptToBeUndone"),
    Mutant("diff_two_pass_abort_does_not_end", "DL2P: an ABORT does not end its transaction, whose changes are undone again",
           [raw(TRANSACTION_TABLE, "    Take(id, counts && method_",
                "    if ({on} && method_ == DiffMethod::kDl2p) return;\n    Take(id, counts && method_")], CELLS,
           model="DifferentialModelTwoPass.AnAbortThatDoesNotEndItsTransactionIsUndoneInHalf",
           test="TransactionTable.WhereAbortsAreCompensatedTheyEndTheirTransactions"),
    Mutant("diff_two_pass_abort_without_compensations", "the baselines abort as DL1P does, without a record of what is undone",
           [expression(DIFFERENTIAL, "options_.diff_method != DiffMethod::kDl1p", "false")], CELLS),
    Mutant("diff_two_pass_redoes_the_backup", "DL2P: what the backup has is redone, too",
           [expression(TWO_PASS_REDO, "change.number >= point_.number", "true")], CELLS),
    Mutant("diff_physical_undo_last", "PL2P: undo follows redo, and overwrites what followed an abort",
           [raw(DIFFERENTIAL_RECOVERY, "    physical_redo_->Run();\n",
                "    physical_redo_->Run();\n"
                "    for (uint32_t log = 0; {on} && log < logs_; ++log) {{\n"
                "      BackwardPass(*ends_[log], PointOf(log), summary_.frontier, database_, {{}}).Run();\n"
                "    }}\n")], CELLS,
           model="DifferentialModelPhysical.AnUndoAfterTheRedoOverwritesALaterTransaction",
           test="PhysicalRecovery.WhatFollowsAnAbortIsNotUndoneWithIt"),
    Mutant("diff_physical_abort_always_counts", "PL2P: an ABORT puts back an image that another log has lost",
           [expression(RESTART_POINT, "log == own",
                       "log == own || record.header.kind == static_cast<uint8_t>(format::RecordKind::kAbort)")], CELLS,
           model="DifferentialModelPhysical.AnAbortThatIsNotCoveredRedoesALostValue",
           test="PhysicalRecovery.AnAbortThatIsNotCoveredPutsNothingBack"),
    Mutant("diff_physical_lost_abort_ends_nothing", "PL2P: the changes of an ABORT that does not count wait for the next attempt's end",
           [raw(PHYSICAL_REDO, "    TakeOut(*FieldOf<TxnId>(body));\n",
                "    if ({on} && !backward_.Counts({{header, body, backward_.source().log_count}})) continue;\n"
                "    TakeOut(*FieldOf<TxnId>(body));\n")], CELLS,
           model="DifferentialModelPhysical.AnAbortThatIsNotCoveredEndsItsAttempt",
           test="PhysicalRecovery.AnAbortThatIsNotCoveredEndsItsAttempt"),
    Mutant("diff_physical_logs_in_turn", "PL2P: the logs are redone one after the other, whatever the stamps",
           [expression(PHYSICAL_REDO, "logs_[log]->stamp()", "uint64_t{0}")], CELLS),
    Mutant("diff_physical_undo_puts_the_image_after", "PL2P: undo puts the image that a change has made",
           [raw(BACKWARD_PASS, "player_.Play(change, Image::kBefore)",
                "player_.Play(change, {on} ? Image::kAfter : Image::kBefore)")], CELLS, test="PhysicalRecovery.UndoPutsTheImageBefore"),
]

DIFFERENTIAL_MUTANTS = RUN_MUTANTS + CHECKPOINT_MUTANTS + RESTART_MUTANTS + BASELINE_MUTANTS
