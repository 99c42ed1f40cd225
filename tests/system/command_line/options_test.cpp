// The command line: every switch of DBx1000 and Taurus is taken, and nothing wrong is.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "logging/device/device_profile.h"
#include "system/command_line/environment.h"
#include "system/command_line/switches.h"
#include "tests/system/command_line/parsed.h"

namespace dbx {
namespace {

TEST(Options, ContinuingReadsALogAndItsSwitchesBelongTogether) {
  const Options o = Parse({"--continue", "--checkpoint", "--drop_old_runs", "--run=3", "-t2"});
  EXPECT_TRUE(o.continue_run && o.checkpoint && o.drop_old_runs && o.reads_log());
  EXPECT_EQ(o.run, 3u);
  EXPECT_FALSE(Parse({}).reads_log());
  EXPECT_REFUSED("leave one out", {"--continue", "-Lr1"});
  EXPECT_REFUSED("--continue", {"--checkpoint"});
  EXPECT_REFUSED("--checkpoint", {"--continue", "--drop_old_runs"});
  EXPECT_TRUE(Parse({"--continue", "--redo=ON_DEMAND"}).redo_on_demand());
  EXPECT_FALSE(Parse({"--continue"}).redo_on_demand());
  EXPECT_REFUSED("--redo=ON_DEMAND belongs to --continue", {"--redo=ON_DEMAND"});
  EXPECT_REFUSED("REDO", {"--continue", "--redo=NEVER"});
  EXPECT_REFUSED("delete", {"--continue", "--log_overwrite"});
}

TEST(Options, GluedShortFlagsSetTheirSwitches) {
  const Options o =
      Parse({"-t8", "-Ln2", "-Gx1000", "-Tm0.25", "-z0.9", "-R16", "-f5", "-s2K", "-n3", "-Lt50", "-Lj10"});
  EXPECT_EQ(o.thread_cnt, 8u);
  EXPECT_EQ(o.num_logger, 2u);
  EXPECT_EQ(o.max_txns_per_thread, 1000u);
  EXPECT_EQ(o.perc_payment, 0.25);
  EXPECT_EQ(o.zipf_theta, 0.9);
  EXPECT_EQ(o.req_per_query, 16u);
  EXPECT_EQ(o.field_per_tuple, 5u);
  EXPECT_EQ(o.synth_table_size, 2048u);
  EXPECT_EQ(o.num_wh, 3u);
  EXPECT_EQ(o.log_flush_interval_us, 50u);
  EXPECT_EQ(o.epoch_period_ms, 10u);
}

TEST(Options, LongFlagsTakeTheirValueWithEqualsOrSpace) {
  const Options o = Parse({"--thread_cnt=3", "--json", "out.json", "--cc=SILO", "--log", "LOG_TAURUS", "--verify",
                           "--workload=TPCC", "--log_type=LOG_COMMAND", "--seconds=1.5"});
  EXPECT_EQ(o.thread_cnt, 3u);
  EXPECT_EQ(o.json_file, "out.json");
  EXPECT_EQ(o.cc, "SILO");
  EXPECT_EQ(o.log, "LOG_TAURUS");
  EXPECT_TRUE(o.verify);
  EXPECT_EQ(o.workload, WorkloadKind::kTpcc);
  EXPECT_EQ(o.log_type, "LOG_COMMAND");
  EXPECT_EQ(o.seconds, 1.5);
}

TEST(Options, TheFullMixOfTpccLeavesNoShareToChoose) {
  EXPECT_FALSE(Parse({}).tpcc_full_mix);
  EXPECT_TRUE(Parse({"--workload=TPCC", "--tpcc_full_mix=1"}).tpcc_full_mix);
  EXPECT_THROW(Parse({"--tpcc_full_mix=1", "-Tm0.3"}), Error);
  EXPECT_EQ(Parse({"--tpcc_full_mix=0", "-Tm0.3"}).perc_payment, 0.3);
}

TEST(Options, TheLongestShortFlagWins) {
  EXPECT_EQ(Parse({"-l7"}).locktable_modifier, 7u);
  EXPECT_EQ(Parse({"-LB8K"}).log_flush_block_bytes, 8192u);
  EXPECT_EQ(Parse({"-Lb1M"}).log_buffer_size, 1u << 20);
  EXPECT_EQ(Parse({"-Ld8K"}).max_log_entry_size, 8192u);
  Parse({"-Lad5"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("RLV_DELTA"), std::string::npos);
}

TEST(Options, EverySwitchHasALongNameAndNoNameIsUsedTwice) {
  std::multiset<std::string> long_names, flags, names;
  for (const Switch& s : Switches()) {
    long_names.insert(s.LongName());
    if (!s.alias.empty()) long_names.insert(std::string(s.alias));
    if (!s.flag.empty()) flags.insert(std::string(s.flag));
    names.insert(std::string(s.name));
  }
  for (const auto* all : {&long_names, &flags, &names}) {
    for (const auto& name : *all) EXPECT_EQ(all->count(name), 1u) << name;
  }
}

TEST(Options, EveryFlagOfDbx1000AndTaurusIsAccepted) {
  const char* const flags[] = {"-t1",  "-p1",  "-v1",  "-q1",   "-d1",   "-a1",    "-m1",   "-Ga1",  "-Gx1",
                               "-Gt1", "-Gk1", "-Gn1", "-Go1",  "-Gl1",  "-Gb1",   "-Gu1",  "-Gc1",  "-c1",
                               "-e1",  "-r1",  "-w1",  "-z1",   "-s1",   "-R1",    "-f1",   "-Ar",   "-Ac",
                               "-Ln1", "-Lr1", "-Lf1", "-Lt1",  "-Lj1",  "-Lk1",   "-Lp1",  "-Lz1",  "-Lw1",
                               "-Li1", "-Le1", "-Tp1", "-Tl1",  "-Tm1",  "-Tu1",   "-l1",   "-n1",   "-h",
                               "-S",   "-of",  "-LD1", "-Lad1", "-Lal1", "-Lb64K", "-Ld4K", "-LB4K", "-LK4K"};
  for (const char* flag : flags) EXPECT_EQ(Refusal({flag}), "") << flag;
}

TEST(Options, AFlagWithoutMeaningWarnsOnceAndSaysWhich) {
  Parse({"-p4", "--cpu_freq=2.5", "-q"});
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("-p4"), std::string::npos);
  EXPECT_NE(warnings[0].find("PART_CNT"), std::string::npos);
  EXPECT_NE(warnings[1].find("CPU_FREQ"), std::string::npos);
}

TEST(Options, AFlagWithoutMeaningTakesItsValueLikeAnyOther) {
  const Options o = Parse({"--part_cnt", "4", "--cpu_freq", "2.5", "--stats_enable", "--compress_lsn_lt=1", "-t3"});
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_NE(warnings[0].find("--part_cnt 4 (PART_CNT)"), std::string::npos) << warnings[0];
  EXPECT_EQ(o.thread_cnt, 3u);
  EXPECT_REFUSED("unexpected argument 5", {"--part_cnt", "4", "5"});
}

TEST(Options, UnknownFlagsAreRefusedByName) {
  EXPECT_REFUSED("unknown flag -x5", {"-x5"});
  EXPECT_REFUSED("unknown flag -L", {"-L"});
  EXPECT_REFUSED("unknown flag --foo", {"--foo=1"});
  EXPECT_REFUSED("unknown flag --thread", {"--thread=1"});  // no guessing
  EXPECT_REFUSED("unknown flag -hx", {"-hx"});
  EXPECT_REFUSED("unexpected argument foo", {"foo"});
}

TEST(Options, ValuesAreWholeStringsWithinTheirRange) {
  for (const char* flag : {"-t",
                           "-t0",
                           "-t4x",
                           "-t-4",
                           "-t+4",
                           "-t 4",
                           "-t4.0",
                           "-t0x4",
                           "-t2000",
                           "-s1T",
                           "-sK",
                           "-s99999999999999999999",
                           "-z0.6x",
                           "-znan",
                           "-zinf",
                           "-z-1",
                           "-r1.5",
                           "-Lt5min",
                           "-Lt1.5us",
                           "-Lj500us",
                           "-Lj0",
                           "-d2",
                           "-Lryes",
                           "--seconds=1h",
                           "--thread_cnt=",
                           "--log_dir=a,,b",
                           "-Ln17"}) {
    EXPECT_NE(Refusal({flag}), "") << flag;
  }
}

TEST(Options, AnEpochLastsAMillisecondAtLeast) {
  EXPECT_REFUSED("EPOCH_PERIOD is out of range (1 to 60000)", {"-Lj0"});
  EXPECT_EQ(Parse({"-Lj1"}).epoch_period_ms, 1u);
}

TEST(Options, WritersShareTheFlushIntervalWhereThereIsNoCoreForEach) {
  const auto interval = [](uint32_t threads, std::vector<std::string> more) {
    std::vector<std::string> words = {"--log=LOG_TAURUS", "--thread_cnt=" + std::to_string(threads)};
    words.insert(words.end(), more.begin(), more.end());
    return Parse(words).log_flush_interval_us;
  };
  const uint32_t cores = UsableCores();
  const std::string four_disks = "--log_dir=a,b,c,d";
  EXPECT_EQ(interval(cores, {four_disks, "--num_logger=4"}), 4 * DefaultOptions().log_flush_interval_us);
  EXPECT_EQ(interval(cores, {four_disks, "--num_logger=4", "--log_flush_interval=200"}), 200u);
  EXPECT_EQ(interval(cores, {four_disks, "--num_logger=2"}), 2 * DefaultOptions().log_flush_interval_us);
  EXPECT_EQ(interval(cores, {"--num_logger=4"}), DefaultOptions().log_flush_interval_us);
  if (cores > 4) {
    EXPECT_EQ(interval(cores - 4, {four_disks, "--num_logger=4"}), DefaultOptions().log_flush_interval_us);
  }
}

TEST(Options, SuffixesAreBinaryForNumbersAndDecimalForTimes) {
  EXPECT_EQ(Parse({"--log_limit=3G"}).log_limit_bytes, uint64_t{3} << 30);
  EXPECT_EQ(Parse({"-Lt2ms"}).log_flush_interval_us, 2000u);
  EXPECT_EQ(Parse({"-Lj1s"}).epoch_period_ms, 1000u);
  EXPECT_EQ(Parse({"-Ga100000"}).abort_penalty_ns, 100'000u);
  EXPECT_EQ(Parse({"-Ga5us"}).abort_penalty_ns, 5'000u);
  EXPECT_DOUBLE_EQ(Parse({"--seconds=250ms"}).seconds, 0.25);
}

TEST(Options, TheLastOfASwitchSetTwiceWinsUnderAnyOfItsNamesWithAWarning) {
  EXPECT_EQ(Parse({"-t4", "--thread_cnt=5"}).thread_cnt, 5u);
  EXPECT_EQ(warnings, std::vector<std::string>{"-t4 ignored: --thread_cnt=5 sets THREAD_CNT later"});
  EXPECT_EQ(Parse({"--max_txns_per_thread=4", "--max_txn_per_part=7"}).max_txns_per_thread, 7u);
  EXPECT_EQ(Parse({"-t4", "-t4"}).given.size(), 1u);
  EXPECT_REFUSED("THREAD_CNT", {"-t0", "-t4"});
}

// What the experiment scripts of DBx1000's Taurus fork pass: six sets, each with eight endings.
TEST(Options, TheFlagSetsOfTheTaurusForksScriptsAreAccepted) {
  const char* const sets[] = {
      "-R2 -z0.6 -r0.5 -l80003 -Tp0 -Tl30000000 -Ls0.05 -Lb10485760",
      "-z0.6 -r0.5 -Tl30000000 -Gx150000 -Lz20 -Lad0 -Lal1 -Tp0 -Ld16384",
      "-z0.0 -R16 -r0.5 -Tl30000000 -Gx150000 -Lz20 -Lad0 -Lal1 -l1600003 -Lt300000",
      "-Ln16 -Lr0 -t64 -z0.6 -R2 -r0.5 -l320003 -Tp0 -Gx150000 -Tl30000000 -Lz10 -Lw10 -Lad0 -Lal1 -s524288000 -LD8 "
      "-n64",
      "-R2 -z0.6 -r0.5 -l1 -Tp0 -Tl30000000 -Gx150000 -Lz10 -Lw10 -Lb524288000 -Lad0 -Lal1 -s524288000 -LB262142976 "
      "-LB524288 -LK1048576",
      "-R2 -z0.6 -r0.5 -l640003 -Tp0 -Gx1500000 -Tl30000000 -Lz10 -Lw10 -Ls0.05 -Lb125537280 -Lt0 -Lad0 -Lal1"};
  const char* const endings[] = {"",          "-Li1",      "-LR1",          "-Lc1",
                                 "-Tm0 -n16", "-Tm1 -n16", "-Ln4 -Lr0 -t8", "-Ln4 -Lr1 -t8"};
  for (const char* const set : sets) {
    for (const char* const ending : endings) {
      std::istringstream words(std::string(set) + " " + ending);
      std::vector<std::string> arguments = {"--log=LOG_TAURUS"};
      for (std::string word; words >> word;) arguments.push_back(word);
      EXPECT_EQ(Refusal(arguments), "") << words.str();
      EXPECT_FALSE(warnings.empty()) << words.str();
    }
  }
}

TEST(Options, SizesThatAreNotWholeBlocksAreRoundedDownWithAWarning) {
  const Options o = Parse({"-Lb125537280", "-LB262145", "-LK5000"});
  EXPECT_EQ(o.log_buffer_size, 125534208u);
  EXPECT_EQ(o.log_flush_block_bytes, 262144u);
  EXPECT_EQ(o.log_read_block_bytes, 4096u);
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0], "LOG_BUFFER_SIZE 125537280 is not a multiple of 4096: rounded to 125534208");
}

TEST(Options, ABufferThatCannotHoldThemMakesSizesSmallerWithAWarning) {
  const Options o = Parse({"-Lb128K", "-LB128K", "-Ld128K"});
  EXPECT_EQ(o.log_flush_block_bytes, 64u << 10);
  EXPECT_EQ(o.max_log_entry_size, 32u << 10);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("half of LOG_BUFFER_SIZE"), std::string::npos) << warnings[0];
}

TEST(Options, NoAnchorsAreLoggedWithAFrequencyOfZero) { EXPECT_EQ(Parse({"-Tp0"}).psn_flush_freq, 0u); }

TEST(Options, ANegativeNumberIsSaidToBeNegative) {
  EXPECT_REFUSED("-z-1: ZIPF_THETA must not be negative", {"-z-1"});
  EXPECT_REFUSED("-t-4: THREAD_CNT must not be negative", {"-t-4"});
  EXPECT_REFUSED("must not be negative", {"-Lt-1us"});
  EXPECT_REFUSED("is not a number", {"-z-x"});
  EXPECT_REFUSED("is not a number", {"-z-"});
}

TEST(Options, AnUnknownNameIsAnsweredWithTheNearestOne) {
  EXPECT_REFUSED("--cc=silo: unknown CC_ALG 'silo'; did you mean SILO? Valid values: NO_WAIT, WAIT_DIE", {"--cc=silo"});
  EXPECT_REFUSED("did you mean LOG_TAURUS?", {"--log=taurus"});
  EXPECT_REFUSED("did you mean LOG_SERIAL?", {"--log=LOG_SERAIL"});
  EXPECT_REFUSED("did you mean WAIT_DIE?", {"--cc=wait-die"});
  EXPECT_REFUSED("unknown CC_ALG 'PESSIMISM'. Valid values", {"--cc=PESSIMISM"});
}

TEST(Options, SizesBeyondAnyMemoryAreRefused) {
  EXPECT_REFUSED("SYNTH_TABLE_SIZE is out of range", {"-s8388608G"});
  EXPECT_REFUSED("LOG_LIMIT is out of range", {"--log_limit=8388608G"});
  EXPECT_REFUSED("WARMUP is out of range", {"--warmup=8388608G"});
}

TEST(Options, ARecoveryNamesTheFlagsThatItIgnoresInOneWarning) {
  Parse({"-Lr1", "-t4", "--verify", "-s1000", "--cc=SILO"});
  EXPECT_TRUE(warnings.empty());
  Parse({"-Lr1", "-z0.9", "--seconds=3", "-Lb1M"});
  EXPECT_EQ(warnings, std::vector<std::string>{
                          "a recovery ignores --seconds, --zipf_theta, --log_buffer_size: they are for runs"});
  Parse({"--continue", "-z0.9", "--seconds=3"});
  EXPECT_TRUE(warnings.empty());
}

TEST(Options, AnAckFileIsCheckedByVerifyOrNotTakenForARecovery) {
  EXPECT_REFUSED("--ack_file is checked by --verify: add it", {"-Lr1", "--ack_file=acks"});
  EXPECT_EQ(Refusal({"-Lr1", "--ack_file=acks", "--verify"}), "");
  EXPECT_EQ(Refusal({"--continue", "--ack_file=acks"}), "");
}

TEST(Options, KnownButUnbuiltValuesSayWhatIsBuilt) {
  EXPECT_REFUSED("CC_ALG OCC is not built yet. Valid values: NO_WAIT, WAIT_DIE, DL_DETECT, SILO, TICTOC, HEKATON, MVCC",
                 {"--cc=OCC"});
  EXPECT_REFUSED("LOG_TAURUS", {"--log=LOG_ARIES"});
}

TEST(Options, MvccIsAnotherNameOfHekaton) {
  EXPECT_EQ(Parse({"--cc=MVCC"}).cc, "HEKATON");
  EXPECT_EQ(Parse({"--cc=HEKATON", "--isolation_level=SNAPSHOT"}).isolation_level, "SNAPSHOT");
}

TEST(Options, AFractionForTpNamesTm) {
  EXPECT_REFUSED("-Tm", {"-Tp0.5"});
  EXPECT_EQ(Parse({"-Tp5"}).psn_flush_freq, 5u);
}

TEST(Options, SharesOfReadsAndWritesFollowEachOtherAndMakeOne) {
  EXPECT_EQ(Parse({"-r0.9"}).write_perc, 0.1);
  EXPECT_EQ(Parse({"-w0.9"}).read_perc, 0.1);
  EXPECT_EQ(Parse({"-r0.3", "-w0.7"}).write_perc, 0.7);
  EXPECT_REFUSED("do not make 1", {"-r0.5", "-w0.6"});
}

TEST(Options, ScansTakeTheirShareOfReadsAndWrites) {
  const auto shares = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--index=IDX_BTREE", "--scan_perc=0.2"});
    const Options options = Parse(args);
    EXPECT_EQ(options.scan_perc, 0.2);
    return std::pair(options.read_perc, options.write_perc);
  };
  EXPECT_EQ(shares({}), std::pair(0.4, 0.4));
  EXPECT_EQ(shares({"-r0.7"}), std::pair(0.7, 0.1));
  EXPECT_EQ(shares({"-w0.8"}), std::pair(0.0, 0.8));
  EXPECT_REFUSED("do not make 1", {"--index=IDX_BTREE", "--scan_perc=0.2", "-r0.9"});
}

TEST(Options, ScansNeedAnOrderedIndex) {
  EXPECT_REFUSED("--index=IDX_BTREE", {"--scan_perc=0.2"});
  EXPECT_EQ(Parse({"--scan_perc=0.2", "--workload=TEST"}).index, "IDX_HASH");
  EXPECT_NE(IdentityText(Parse({"--index=IDX_BTREE", "--scan_len=7"})).find("SCAN_LEN=7"), std::string::npos);
}

TEST(Options, TestCaseFlagsChooseOnePart) {
  EXPECT_TRUE(Parse({}).test_read_write && Parse({}).test_conflict);
  EXPECT_TRUE(Parse({"-Ar"}).test_read_write && !Parse({"-Ar"}).test_conflict);
  EXPECT_TRUE(!Parse({"-Ac"}).test_read_write && Parse({"-Ac"}).test_conflict);
  EXPECT_TRUE(Parse({"-Ar", "-Ac"}).test_read_write && Parse({"-Ar", "-Ac"}).test_conflict);
}

TEST(Options, TheDeviceIsRealUnlessAskedForOtherwise) {
  EXPECT_EQ(Parse({}).log_device, "real");
  EXPECT_EQ(Parse({"--log_device=none"}).log_device, "real");
  for (const char* device : {"nvme:0.025", "disk29,channel=160M"}) {
    EXPECT_EQ(Parse({std::string("--log_device=") + device}).log_device, device);
  }
  EXPECT_EQ(IdentityText(Parse({"--log_device=hdd"})), IdentityText(Parse({}))) << "what a log means is the same";
}

TEST(Options, AWrongDeviceIsRefusedWithWhatThereIs) {
  for (const NamedProfile& named : kDeviceProfiles) EXPECT_REFUSED(std::string(named.name), {"--log_device=floppy"});
  EXPECT_REFUSED("--log_device=floppy: LOG_DEVICE is not a device", {"--log_device=floppy"});
}

TEST(Options, TheHelpNamesEveryDevice) {
  const std::string help = HelpText(), line = help.substr(help.find("--log_device="));
  for (const NamedProfile& named : kDeviceProfiles) {
    EXPECT_LT(line.find(" " + std::string(named.name)), line.find('\n')) << named.name;
  }
}

TEST(Options, LogDirectoriesAndTheirNumberAgree) {
  EXPECT_EQ(Parse({}).log_dirs, std::vector<std::string>{"./logs"});
  EXPECT_EQ(Parse({"-LD2"}).log_dirs, (std::vector<std::string>{"./logs/d0", "./logs/d1"}));
  EXPECT_EQ(Parse({"--log_dir=a,b,c"}).number_of_disks, 3u);
  EXPECT_EQ(Parse({"--log_dir=a,b", "-LD2"}).number_of_disks, 2u);
  EXPECT_REFUSED("contradicts", {"--log_dir=a,b", "-LD3"});
  EXPECT_EQ(Parse({}).backup_dirs, 0u);
  EXPECT_EQ(Parse({"--log_dir=a,b,c", "--backup_dirs=2"}).backup_dirs, 2u);
  EXPECT_REFUSED("BACKUP_DIRS 2 leaves none of the 2 directories", {"--log_dir=a,b", "--backup_dirs=2"});
  EXPECT_REFUSED("twice", {"--log_dir=a,a"});
}

TEST(Options, SizesThatWereNotGivenFollowTheBuffer) {
  const Options o = Parse({"-Lb128K"});
  EXPECT_LE(o.max_log_entry_size, o.log_buffer_size / 2);
  EXPECT_LE(o.log_flush_block_bytes, o.log_buffer_size / 2);
  EXPECT_TRUE(warnings.empty());
}

TEST(Options, AHoppingDistanceIsAPowerOfTwoThatFitsTheBuffer) {
  EXPECT_EQ(Parse({"-Lb32M"}).hopping_distance_bytes, 4u << 20);
  EXPECT_EQ(Parse({"-Lb128K"}).hopping_distance_bytes, 64u << 10);
  EXPECT_EQ(Parse({"-Lb1M", "--hopping_distance=4K"}).hopping_distance_bytes, 4096u);
  EXPECT_REFUSED("power of two", {"--hopping_distance=5000"});
  EXPECT_REFUSED("half of LOG_BUFFER_SIZE", {"-Lb128K", "--hopping_distance=128K"});
}

TEST(Options, TheCentralLogHasFourMethods) {
  for (const char* name : {"ELEDA", "MUTEX", "CONSOLIDATION", "BITMAP"}) {
    EXPECT_EQ(Parse({"--central_log", name}).central_log, name);
  }
  EXPECT_REFUSED("Valid values: ELEDA, MUTEX, CONSOLIDATION, BITMAP", {"--central_log=SPINLOCK"});
}

TEST(Options, ContradictionsAreRefused) {
  EXPECT_REFUSED("exclude", {"--seconds=1", "-Gx5"});
  EXPECT_REFUSED("-Lr1", {"--run=3"});
  EXPECT_REFUSED("-Lr1", {"--recover_serial=never"});
  EXPECT_REFUSED("delete", {"-Lr1", "--log_overwrite"});
  EXPECT_REFUSED("one stream", {"--log=LOG_SERIAL", "-Ln4"});
  EXPECT_REFUSED("one stream", {"--log=LOG_ELEDA", "-Ln4"});
  EXPECT_EQ(Parse({"-Lr1", "--run=3"}).run, 3u);
}

TEST(Options, UpdateSimdIsAnotherNameForScalar) {
  EXPECT_EQ(Parse({"--update_simd=0"}).simd, "scalar");
  EXPECT_FALSE(Parse({"--simd=scalar"}).update_simd);
  EXPECT_REFUSED("exclude", {"--update_simd=1", "--simd=avx2"});
}

TEST(Options, TheOutputFileMayBeGluedOrFollow) {
  EXPECT_EQ(Parse({"-oa.txt"}).output_file, "a.txt");
  EXPECT_EQ(Parse({"-o", "a.txt", "-t2"}).output_file, "a.txt");
  EXPECT_REFUSED("needs a value", {"-o"});
}

TEST(Options, DefaultsAreCompleteAndParsingNothingGivesThem) {
  const Options o = DefaultOptions();
  EXPECT_EQ(EffectiveConfiguration(o), EffectiveConfiguration(Parse({})));
  for (const uint64_t bytes : {o.log_buffer_size, o.max_log_entry_size, o.log_flush_block_bytes, o.log_read_block_bytes,
                               o.log_limit_bytes, o.locktable_modifier, o.log_flush_interval_us}) {
    EXPECT_GT(bytes, 0u);
  }
}

// Every effective value, given back as a flag, gives the same configuration.
TEST(Options, EffectiveValuesParseBackToThemselves) {
  const Options o =
      Parse({"-t7", "-z0.75", "-r0.9", "-Ga7us", "-Lj3", "--cc=SILO", "--workload=TPCC", "--log_dir=a,b"});
  const auto values = EffectiveConfiguration(o);
  for (const Switch& s : Switches()) {
    if (s.kind == SwitchKind::kIgnored) continue;
    Options copy = o;
    const std::string text = FormatSwitch(s, o);
    if (!text.empty()) SetSwitch(s, text, copy);
    EXPECT_EQ(EffectiveConfiguration(copy), values) << s.name;
  }
}

TEST(Options, HelpNamesEverySwitch) {
  const std::string help = HelpText();
  for (const Switch& s : Switches()) {
    const std::string name = s.kind == SwitchKind::kIgnored ? std::string(s.name) : "--" + s.LongName();
    EXPECT_NE(help.find(name), std::string::npos) << name;
  }
}

// ---- A log's identity ---------------------------------------------------------------------------------------

const std::vector<std::string> kWriter = {"--cc=SILO", "--log=LOG_TAURUS", "-Ln4", "-s5000", "--seed=9", "-f3"};

TEST(Identity, ARecoveryTakesWhatTheLogWasWrittenWith) {
  Options o = Parse({"-Lr1", "-t2"});
  AdoptIdentity(IdentityText(Parse(kWriter)), o);
  EXPECT_EQ(o.cc, "SILO");
  EXPECT_EQ(o.log, "LOG_TAURUS");
  EXPECT_EQ(o.num_logger, 4u);
  EXPECT_EQ(o.synth_table_size, 5000u);
  EXPECT_EQ(o.seed, 9u);
  EXPECT_EQ(o.field_per_tuple, 3u);
  EXPECT_EQ(o.thread_cnt, 2u);
  EXPECT_TRUE(o.log_recover);
}

TEST(Identity, ARecoveryLearnsThatTheLogWasNeverSynced) {
  Options o = Parse({"-Lr1"});
  AdoptIdentity(IdentityText(Parse({"--log=LOG_TAURUS", "-Lf1"})), o);
  EXPECT_TRUE(o.log_no_flush);
}

TEST(Identity, ARunThatGoesOnSharesTheFlushIntervalAsTheOneBefore) {
  const std::string threads = "--thread_cnt=" + std::to_string(UsableCores()), disks = "--log_dir=a,b,c,d";
  const auto interval = [&](const std::vector<std::string>& writer, std::vector<std::string> more) {
    std::vector<std::string> words = {threads, disks};
    words.insert(words.end(), more.begin(), more.end());
    Options o = Parse(words);
    AdoptIdentity(IdentityText(Parse(writer)), o);
    return o.log_flush_interval_us;
  };
  const uint64_t usual = DefaultOptions().log_flush_interval_us;
  EXPECT_EQ(interval(kWriter, {"--continue"}), 4 * usual);
  EXPECT_EQ(interval(kWriter, {"--continue", "-Lt300"}), 300u);
  EXPECT_EQ(interval({"--log=LOG_TAURUS", "-Ln2"}, {"--continue"}), 2 * usual);
  EXPECT_EQ(interval({"--log=LOG_SERIAL"}, {"--continue"}), usual);
  EXPECT_EQ(interval(kWriter, {"-Lr1"}), usual);
}

TEST(Identity, EqualFlagsAreFineAndContradictingOnesNameBothValues) {
  const std::string identity = IdentityText(Parse(kWriter));
  Options equal = Parse({"-Lr1", "-s5000"});
  EXPECT_NO_THROW(AdoptIdentity(identity, equal));
  Options other = Parse({"-Lr1", "-s6000"});
  try {
    AdoptIdentity(identity, other);
    FAIL() << "the contradiction was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::kMismatch);
    for (const char* part : {"SYNTH_TABLE_SIZE", "6000", "5000"})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos);
  }
}

TEST(Identity, AnotherThreadCountOrMixIsNoContradiction) {
  Options o = Parse({"-Lr1", "-t9", "-r0.9", "-z0.1", "-Gx7"});
  EXPECT_NO_THROW(AdoptIdentity(IdentityText(Parse(kWriter)), o));
}

TEST(Identity, OnlyTheSwitchesOfTheWorkloadBelongToIt) {
  EXPECT_EQ(IdentityText(Parse({"--workload=TPCC"})).find("SYNTH_TABLE_SIZE"), std::string::npos);
  EXPECT_NE(IdentityText(Parse({"--workload=TPCC"})).find("NUM_WH=1\n"), std::string::npos);
  EXPECT_EQ(IdentityText(Parse({})).find("NUM_WH"), std::string::npos);
}

TEST(Identity, TheMixOfTpccBelongsToIt) {
  Options o = Parse({"-Lr1"});
  AdoptIdentity(IdentityText(Parse({"--workload=TPCC", "--tpcc_full_mix=1"})), o);
  EXPECT_TRUE(o.tpcc_full_mix);
  AdoptIdentity(IdentityText(Parse({"--workload=TPCC"})), o);
  EXPECT_FALSE(o.tpcc_full_mix);
}

TEST(Identity, AllSwitchesOfSmsBelongToIt) {
  Options o = Parse({"-Lr1"});
  const std::vector<std::string> writer = {"--workload=SMS", "--sms_rows=2K", "--sms_slot_bytes=64"};
  AdoptIdentity(IdentityText(Parse(writer)), o);
  EXPECT_TRUE(o.workload == WorkloadKind::kSms && o.sms_rows == 2048 && o.sms_slot_bytes == 64);
  Options other = Parse({"-Lr1", "--sms_abort_perc=3"});
  EXPECT_THROW(AdoptIdentity(IdentityText(Parse(writer)), other), Error);
}

ExitStatus AdoptStatus(const std::string& identity) {
  Options o = Parse({"-Lr1"});
  const auto before = EffectiveConfiguration(o);
  try {
    AdoptIdentity(identity, o);
  } catch (const Error& e) {
    EXPECT_EQ(EffectiveConfiguration(o), before) << "a refused identity changed the options";
    return e.status();
  }
  return ExitStatus::kOk;
}

TEST(Identity, TextThatDoesNotParseIsCorrupt) {
  const std::string good = IdentityText(Parse(kWriter));
  EXPECT_EQ(AdoptStatus(good), ExitStatus::kOk);
  EXPECT_EQ(AdoptStatus(good.substr(0, good.size() - 1)), ExitStatus::kCorrupt);
  EXPECT_EQ(AdoptStatus(good + "junk\n"), ExitStatus::kCorrupt);
  EXPECT_EQ(AdoptStatus(good + "SEED=9\n"), ExitStatus::kCorrupt);  // twice
  EXPECT_EQ(AdoptStatus("CC_ALG=99" + good.substr(good.find('\n'))), ExitStatus::kCorrupt);
  EXPECT_EQ(AdoptStatus(good + "THREAD_CNT=3\n"), ExitStatus::kMismatch);  // not part of an identity
}

// Nothing stands in for what a log does not say: an unsynced one must not pass for synced.
TEST(Identity, ALackingSwitchIsAMismatch) {
  std::string text = IdentityText(Parse(kWriter));
  EXPECT_EQ(AdoptStatus(text.erase(text.find("LOG_NO_FLUSH=0\n"), 15)), ExitStatus::kMismatch);
  EXPECT_EQ(AdoptStatus(""), ExitStatus::kMismatch);
}

TEST(Modes, ACheckpointHasAPartForEachOfALimitedNumberOfDirectories) {
  std::string directories = "d0";
  for (int i = 1; i < 64; ++i) directories += ",d" + std::to_string(i);
  EXPECT_NO_THROW(Parse({"--continue", "--checkpoint", "--log_dir=" + directories}));
  EXPECT_THROW(Parse({"--continue", "--checkpoint", "--log_dir=more," + directories}), Error);
  EXPECT_NO_THROW(Parse({"--continue", "--log_dir=more," + directories}));
}

}  // namespace
}  // namespace dbx
