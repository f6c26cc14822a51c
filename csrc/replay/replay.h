// The native backend: executes a lowering on the nodes of a live graph, as one flat loop.
#pragma once

#include "plan/executable.h"

namespace backbind {

const Backend& native_backend();

}  // namespace backbind
