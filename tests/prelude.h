// The same for the tests (base/prelude.h).
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prelude.h"
