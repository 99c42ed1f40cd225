// Damage to an image: what a disk, a cable or a person does to files behind the engine's back.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "tests/logging/device/faulty_file_system.h"

namespace dbx::sim {

struct Damage {
  std::string what;  // was done; "": there is nothing to damage
  // It may look like the torn tail of a log that no later run continues. Any other damage is refused, or changes
  // nothing.
  bool may_cut = false;
  // It stands behind all that was written: nothing is refused, and nothing is lost.
  bool must_not_matter = false;
};

// Puts something into `image` that is not its own: a log twice, a log of another run or database, its records behind
// our own. A recovery that replayed a foreign record would recover a transaction that never began.
Damage AddForeignLog(FaultyFileSystem::Image& image, std::mt19937_64& random);

// A log, or one of the files beside it, is missing, or stands where another should.
Damage LoseOrSwap(FaultyFileSystem::Image& image, std::mt19937_64& random);

// Zeros or garbage over the first 4 to 16 KiB of a file: of any, or of those of run `run`.
Damage DamageStart(FaultyFileSystem::Image& image, std::mt19937_64& random, uint32_t run = 0);

// A run is gone with its directories, which is not the only one, nor run `but`.
Damage LoseRun(FaultyFileSystem::Image& image, std::mt19937_64& random, uint32_t but = 0);

// The logs of a run are gone, and its other files are there.
Damage LoseLogs(FaultyFileSystem::Image& image, uint32_t run);

// `fresh`, which holds run 1 alone, beside the runs of `others`, as the newest of all; returns its number.
uint32_t PutBeside(FaultyFileSystem::Image& fresh, const FaultyFileSystem::Image& others);

// Damages one file of `image` in one way: a log, or one of the files beside it.
Damage DamageOneFile(FaultyFileSystem::Image& image, std::mt19937_64& random);

// A persistent heap, or its log of gaps. What is left out cannot be told from what a crash leaves: a newest record that
// is torn, versions whose stamps are a loser's.
Damage DamageHeap(FaultyFileSystem::Image& image, std::mt19937_64& random);

}  // namespace dbx::sim
