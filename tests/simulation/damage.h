// Damage to an image of logs: what a disk, a cable or a person does to files behind the engine's back.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "logging/device/faulty_file_system.h"

namespace dbx::sim {

// Damages one log of `image` in one way and returns what was done ("" if there is no log). Whether it can be told
// from a torn tail depends on where it fell: a recovery may refuse, or recover what the reference recovers.
std::string Damage(FaultyFileSystem::Image& image, std::mt19937_64& random);

}  // namespace dbx::sim
