"""Faults that the crash tests must find: each is one of the traps of logging, put into a copy of the sources.

A mutant replaces text of one or more files where it occurs exactly once; generate.py writes the copy, in which a
run-time switch chooses between the original and each mutant. The product's sources know nothing of this.
"""
from backup_mutants import BACKUP_MUTANTS
from concurrency_mutants import CONCURRENCY_MUTANTS
from differential_mutants import DIFFERENTIAL_MUTANTS
from instant_mutants import INSTANT_MUTANTS
from logging_mutants import LOGGING_MUTANTS
from multi_master_death_mutants import MULTI_MASTER_DEATH_MUTANTS
from multi_master_mutants import MULTI_MASTER_MUTANTS
from recovery_mutants import RECOVERY_MUTANTS
from replication_mutants import REPLICATION_MUTANTS
from row_mutants import ROW_MUTANTS
from write_behind_mutants import WRITE_BEHIND_MUTANTS

MUTANTS = (LOGGING_MUTANTS + CONCURRENCY_MUTANTS + RECOVERY_MUTANTS + DIFFERENTIAL_MUTANTS
           + BACKUP_MUTANTS + ROW_MUTANTS + WRITE_BEHIND_MUTANTS + REPLICATION_MUTANTS + INSTANT_MUTANTS
           + MULTI_MASTER_MUTANTS + MULTI_MASTER_DEATH_MUTANTS)
