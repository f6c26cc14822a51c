// What a backward was asked to call when it has ended (Engine::queue_callback).
#pragma once

#include <torch/csrc/autograd/graph_task.h>

namespace backbind {

// Calls the final callbacks of a backward, in the modes of its task. A callback may queue another.
void call_final_callbacks(torch::autograd::GraphTask& task);

}  // namespace backbind
