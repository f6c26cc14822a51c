// What backends are to the rest: each makes something that can run a plan, and that is kept beside the plan.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "plan/lowering.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "plan/run_report.h"

namespace backbind {

using torch::autograd::variable_list;

// Runs backwards of one structure. Several threads may do so at once.
class Executable {
 public:
  Executable() = default;
  virtual ~Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Runs the backward of `request`, whose graph has the structure of the plan and these `nodes`, and returns the
  // gradients that were asked for. What a caller can see is what the engine would have done: values, hooks and their
  // order, what is released and when, errors. Tells in `report` what is worth counting.
  virtual variable_list run(const LiveNodes& nodes, const Request& request, RunReport& report) const = 0;
};

// A backward that was run up to some step: what a backend needs to go on where another one had to stop.
struct Progress {
  size_t first_step;
  // Whether the hooks before that step have been called.
  bool has_called_pre_hooks = false;
  // What the input buffers of the steps from there on hold.
  std::vector<std::pair<InputRef, at::Tensor>> buffers;
  // What is known of the gradients that were asked for.
  variable_list returned;
};

// An executable that can also go on where another one stopped.
class ResumableExecutable : public Executable {
 public:
  // Runs the steps that are left, without the final callbacks.
  virtual variable_list resume(const LiveNodes& nodes, const Request& request, RunReport& report,
                               Progress progress) const = 0;
};

using ExecutablePtr = std::shared_ptr<const Executable>;

// What a lowering is made executable by. What it makes is kept as long as it lives.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual ExecutablePtr prepare(PlanPtr plan, std::shared_ptr<const Lowering> lowering) const = 0;
};

using BackendPtr = std::shared_ptr<const Backend>;

}  // namespace backbind
