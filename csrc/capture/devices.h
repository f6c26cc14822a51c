// Which devices a backward touches, as the engine knows before it runs anything.
#pragma once

#include "plan/request.h"

namespace backbind {

// Whether the process has any device whose nodes the engine may run outside the thread that asks for a backward.
bool has_other_devices();

// Whether a backward has a gradient on an accelerator, which has queues and streams of its own. Costs nothing where the
// process has none.
bool touches_accelerator(const Request& request);

}  // namespace backbind
