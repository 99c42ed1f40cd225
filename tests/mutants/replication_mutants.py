"""Faults of replication: what is sent when, and what an acknowledgement waits for."""
from edits import Mutant, expression, raw, statement
from sources import REPLICA, REPLICA_STREAM, REPLICATED

TEST = "ReplicationTest."

REPLICATION_MUTANTS = [
    Mutant("replica_ahead", "trap 34: a replica is sent what the run has not drained yet",
           [raw(REPLICATED, "    writer_->Drain();\n", "    if (!{on}) writer_->Drain();\n"),
            raw(REPLICATED, "    if (waits_) sent_.AwaitApplied(frame);\n",
                "    if (waits_) sent_.AwaitApplied(frame);\n    if ({on}) writer_->Drain();\n")], "LOG_WBL/LOG_DATA",
           test=TEST + "AFailedDrainSendsNothing"),
    Mutant("replica_not_awaited", "a synchronous run acknowledges what is on its way to the replica",
           [expression(REPLICATED, "commits && stream.is_synchronous()", "false")], "LOG_WBL/LOG_DATA",
           test=TEST + "ADrainThatCommitsReturnsWhenTheCopyIsDurable"),
    Mutant("replica_of_a_log_not_awaited", "a log is complete once it is on its way to a synchronous replica",
           [expression(REPLICATED, "unconfirmed_.front().frame < sent_.applied()", "true")], "LOG_TAURUS/LOG_DATA",
           test=TEST + "ALogIsCompleteAsFarAsTheCopyIsDurable"),
    Mutant("replica_undrained", "a replica answers for what it has stored and not drained",
           [statement(REPLICA, "if (file.memory != nullptr) file.writer->Drain();", "")], "LOG_WBL/LOG_DATA",
           test=TEST + "ADrainThatCommitsReturnsWhenTheCopyIsDurable"),
    Mutant("replica_takes_any_frame", "a replica applies a frame though one before it is missing",
           [expression(REPLICA, "header.number != result_.frames", "false")], "LOG_WBL/LOG_DATA",
           test="ReplicaTest.AMissingFrameIsRefused"),
    Mutant("replica_forgets_a_loss", "a synchronous run goes on when its replica is lost",
           [expression(REPLICA_STREAM, "lost_ && synchronous_", "false")], "LOG_WBL/LOG_DATA",
           test=TEST + "ASynchronousRunEndsWithItsReplica"),
]
