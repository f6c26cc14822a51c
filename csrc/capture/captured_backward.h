// Runs one backward of a session: by a plan that fits, by a new plan, or by the engine.
#pragma once

#include <cstddef>
#include <mutex>

#include "capture/session.h"

namespace backbind {

// Runs a backward that the engine handed over: in the session of the running context, or in the engine if there is
// none.
variable_list run_handed_over(const Request& request);

// Forgets all plans.
void clear_plans();

size_t plan_count();

// What these take of memory.
size_t plan_bytes();

// Guards the plans; held over a fork.
std::mutex& plans_mutex();

}  // namespace backbind
