// One run of a printed graph on live nodes: what happens to the nodes around the code of a user that the graph calls.
//
// As long as nothing but operators run, nobody can change what lies ahead. So steps are checked together behind each
// call of foreign code, up to the next: a hook may have changed a saved tensor, or other hooks. Then the graph is left,
// and the native backend goes on where it stopped. Saved values are let go of step by step, as the generated code says;
// what is compiled cannot say that, so there they go when the first step of those between two calls is about to run.
#pragma once

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <vector>

#include "graph/lifted_values.h"
#include "plan/executable.h"
#include "thread_modes.h"

namespace backbind {

class GraphRun {
 public:
  // All that is referred to must live until finish().
  GraphRun(const Plan& plan, const LiveNodes& nodes, const Request& request, const std::vector<StepCode>& code,
           bool follows_changes, const ResumableExecutable& native, RunReport& report);

  // To be called before the graph runs.
  void begin();

  // To be called behind each call of foreign code, with the phase of the step that it belongs to.
  enum class Phase : uint8_t { kBeforeCall, kCall, kBehindCall };
  void after_foreign_code(size_t step, Phase phase, bool is_last_of_phase);

  // Whether what lies ahead is not what the graph was made for.
  bool must_be_left() const { return must_be_left_; }

  // The same, behind a step that ran foreign code: modes of the thread that this left behind end with it, and what the
  // step saved is let go of.
  bool end_step(size_t step);

  // Lets go of what a step saved.
  void release(size_t step);

  // To be called when the graph has run to its end. A compiler may have put foreign code into what it made, of which
  // nothing was heard here.
  //
  // Raises RuntimeError where hooks were added that the graph did not call.
  void end();

  // Runs the steps that are left natively.
  variable_list resume(Progress progress);

  // The graph is no longer run: what still holds this object may ask nothing of it.
  void finish() { is_running_ = false; }
  bool is_running() const { return is_running_; }
  bool runs(size_t step) const { return plan_.steps[step].runs; }
  bool keeps_graph() const { return request_.task.keep_graph_; }
  const StepCode& code_of(size_t step) const { return code_[step]; }

 private:
  // The first step from this one on that runs foreign code; the number of steps where there is none.
  size_t foreign_from(size_t step) const;
  // Whether foreign code has changed one of these steps.
  bool has_changed(size_t first, size_t end) const;
  bool is_as_lifted(size_t step) const;
  void restore_modes() const;
  // What is due before the steps from `first` on; step `end` runs foreign code next.
  void go_on(size_t first, size_t end);
  // Notes down whether foreign code has changed one of these steps. Raises RuntimeError where it has, and nobody can
  // leave the graph.
  void check(size_t first, size_t end);
  void release_before(size_t end);

  const Plan& plan_;
  const LiveNodes& nodes_;
  const Request& request_;
  const std::vector<StepCode>& code_;
  const bool follows_changes_;
  const ResumableExecutable& native_;
  RunReport& report_;
  ThreadModes modes_;
  // The first step that has not been let go of, where that is done together.
  size_t next_ = 0;
  bool has_run_foreign_code_ = false;
  bool must_be_left_ = false;
  bool is_running_ = true;
};

// A live node as a graph holds it: to call its hooks, to unpack what it saved, or to call it.
struct LiveStep {
  c10::intrusive_ptr<torch::autograd::Node> node;
  // Null where the node has no operator.
  const Binding* binding;
  uint32_t position;
  // Null in a graph that was traced: nothing is released.
  std::shared_ptr<GraphRun> run;
};

// Each as the engine does it, as part of the run if there is one.
variable_list call_hooks(const LiveStep& step, HookKind kind, variable_list gradients);
variable_list call_post_hooks(const LiveStep& step, variable_list results, const variable_list& gradients);
variable_list call_node(const LiveStep& step, variable_list gradients);
// The saved tensors that have hooks which unpack them, in the order of the operator's arguments.
variable_list unpack(const LiveStep& step);
// Adds a gradient to the leaf, and calls the hooks behind that.
void accumulate_with_hooks(const LiveStep& step, variable_list gradients);

}  // namespace backbind
