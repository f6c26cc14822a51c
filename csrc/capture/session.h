// What a caller of capture() holds: which backend runs backwards, and what came of them.
#pragma once

#include <memory>
#include <utility>

#include "capture/statistics.h"
#include "plan/executable.h"

namespace backbind {

struct Session {
  explicit Session(BackendPtr runner) : backend(std::move(runner)) {}

  const BackendPtr backend;
  Statistics statistics;
};

using SessionPtr = std::shared_ptr<Session>;

}  // namespace backbind
