// Damage to an image: what a disk, a cable or a person does to files behind the engine's back.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "logging/device/faulty_file_system.h"

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
// our own. Whoever replayed a foreign record would recover a transaction that never began.
Damage AddForeignLog(FaultyFileSystem::Image& image, std::mt19937_64& random);

// A log, or one of the files beside it, is missing, or stands where another should.
Damage LoseOrSwap(FaultyFileSystem::Image& image, std::mt19937_64& random);

// Damages one file of `image` in one way: a log, or one of the files beside it.
Damage DamageOneFile(FaultyFileSystem::Image& image, std::mt19937_64& random);

}  // namespace dbx::sim
