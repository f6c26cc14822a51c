#include "graph/graph_backend.h"

#include <ATen/ThreadLocalState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "hooks/final_callbacks.h"
#include "thread_modes.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::Node;

// How many graphs are kept for one plan.
constexpr size_t kGraphsHeld = 8;

// A graph and what was baked into it.
struct KeptGraph {
  bool builds_graph;
  BakedFacts baked;
  CompiledGraphPtr compiled;
};
using KeptGraphPtr = std::shared_ptr<const KeptGraph>;

// The graphs of one plan, those used last; safe to use from several threads.
class Graphs {
 public:
  KeptGraphPtr find(bool builds_graph, const Facts& facts) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(kept_, [&](const KeptGraphPtr& one) {
      return one->builds_graph == builds_graph && !one->baked.mismatch(facts).has_value();
    });
    if (found == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), found, found + 1);
    return kept_.front();
  }

  // Of those used last, one that differs from these facts in sizes or numbers alone, or else any; or null.
  KeptGraphPtr nearest(bool builds_graph, const Facts& facts) const {
    const std::lock_guard lock(mutex_);
    KeptGraphPtr nearest;
    for (const KeptGraphPtr& one : kept_) {
      if (one->builds_graph != builds_graph) continue;
      if (one->baked.facts.constants == facts.constants) return one;
      if (nearest == nullptr) nearest = one;
    }
    return nearest;
  }

  void keep(KeptGraphPtr graph) {
    KeptGraphPtr evicted;  // may hold objects of Python, so it goes without the lock
    const std::lock_guard lock(mutex_);
    kept_.push_front(std::move(graph));
    if (kept_.size() <= kGraphsHeld) return;
    evicted = std::move(kept_.back());
    kept_.pop_back();
  }

 private:
  mutable std::mutex mutex_;
  std::deque<KeptGraphPtr> kept_;
};

BakedFacts baked_alone(Facts facts, Dynamic dynamic) {
  std::vector<bool> sizes(facts.sizes.size(), dynamic == Dynamic::kAlways);
  std::vector<bool> numbers(facts.numbers.size(), dynamic == Dynamic::kAlways);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (facts.sizes[i].is_heap_allocated()) sizes[i] = true;  // a symbol has no value to bake
  }
  return {.facts = std::move(facts), .dynamic_sizes = std::move(sizes), .dynamic_numbers = std::move(numbers)};
}

template <class Fact>
std::vector<Fact> chosen(const std::vector<Fact>& facts, const std::vector<bool>& is_chosen) {
  std::vector<Fact> some;
  for (size_t i = 0; i < facts.size(); ++i) {
    if (is_chosen[i]) some.push_back(facts[i]);
  }
  return some;
}

// The engine's nodes feel the autocast of who asked for the backward, which functional operators leave out.
bool is_autocast_on() {
  return !(c10::autocast_dispatch_keyset - c10::impl::tls_local_dispatch_key_set().excluded_).empty();
}

class GraphExecutable final : public Executable {
 public:
  GraphExecutable(PlanPtr plan, std::shared_ptr<const Lowering> lowering, std::shared_ptr<const GraphCompiler> compiler,
                  Dynamic dynamic, bool follows_changes, PrepareNative prepare_native)
      : plan_(std::move(plan)),
        lowering_(std::move(lowering)),
        compiler_(std::move(compiler)),
        dynamic_(dynamic),
        follows_changes_(follows_changes),
        native_(prepare_native(plan_, lowering_)) {}

  variable_list run(const LiveNodes& nodes, const Request& request, RunReport& report) const override {
    variable_list gradients;
    {
      const at::ThreadLocalStateGuard state(request.task.thread_locals_);
      std::optional<LiftedValues> values = lifted(nodes, request, report);
      if (!values.has_value()) return native_->run(nodes, request, report);
      gradients = run_graph(nodes, request, report, *values);
    }
    call_final_callbacks(request.task);
    return gradients;
  }

 private:
  // Nothing where the backward has to be run natively: the report says why.
  std::optional<LiftedValues> lifted(const LiveNodes& nodes, const Request& request, RunReport& report) const {
    if (plan_->steps.empty() || (plan_->roots.size() == 1 && !plan_->roots[0].is_followed())) {
      // The engine begins a backward from one root at that root, whose hooks it calls even if nobody asks for anything
      // behind it: that is no step of the plan.
      report.native_run = NativeRunReason::kRootNotNeeded;
    } else if (!follows_changes_ && at::GradMode::is_enabled()) {
      report.native_run = NativeRunReason::kBuildsGraph;
    } else if (torch::autograd::AnomalyMode::is_enabled()) {
      // A compiled graph could not say which node it was.
      report.native_run = NativeRunReason::kAnomalyMode;
    } else if (has_active_modes() || is_autocast_on()) {
      // Who wants to see each operator sees those that the nodes call, and nothing else.
      report.native_run = NativeRunReason::kActiveModes;
    } else if (has_subclasses(nodes)) {
      // Such tensors see each operator too.
      report.native_run = NativeRunReason::kSubclasses;
    } else {
      try {
        return lift_values(*plan_, nodes, request);
      } catch (const std::exception&) {
        // What eager has an error for is raised when the step's turn comes.
        report.native_run = NativeRunReason::kUnusualValues;
      }
    }
    return std::nullopt;
  }

  // Whether a gradient is to be a tensor of a class of Python that decides what operators do with it.
  static bool has_subclasses(const LiveNodes& nodes) {
    return std::ranges::any_of(nodes, [](const Node* node) {
      for (uint32_t i = 0; i < node->num_inputs(); ++i) {
        if (node->input_metadata(i).is_tensor_subclass()) return true;
      }
      return false;
    });
  }

  variable_list run_graph(const LiveNodes& nodes, const Request& request, RunReport& report,
                          LiftedValues& values) const {
    const bool builds_graph = at::GradMode::is_enabled();
    const KeptGraphPtr graph = graph_for(nodes, request, values, builds_graph, report);
    const auto run =
        std::make_shared<GraphRun>(*plan_, nodes, request, values.code, follows_changes_, *native_, report);
    GraphArguments arguments{.tensors = std::move(values.tensors),
                             .sizes = chosen(values.facts.sizes, graph->baked.dynamic_sizes),
                             .numbers = chosen(values.facts.numbers, graph->baked.dynamic_numbers),
                             .steps = {},
                             .whole = {nodes[0]->getptr(), plan_->steps[0].binding, 0, run}};
    for (size_t i = 0; i < values.code.size(); ++i) {
      if (values.code[i].is_foreign())
        arguments.steps.push_back({nodes[i]->getptr(), plan_->steps[i].binding, static_cast<uint32_t>(i), run});
    }
    if (!arguments.steps.empty()) {
      // Foreign code may ask the task for the graph; for the whole order only in the first step (replay/replay.cpp).
      request.note_graph();
      if (arguments.steps.front().position > 0) torch_private::release_dependencies(request.task);
    }
    const Finish finish(*run);
    run->begin();
    variable_list gradients = graph->compiled->call(std::move(arguments));
    run->end();
    return gradients;
  }

  class Finish {
   public:
    explicit Finish(GraphRun& run) : run_(run) {}
    ~Finish() { run_.finish(); }
    Finish(const Finish&) = delete;
    Finish& operator=(const Finish&) = delete;

   private:
    GraphRun& run_;
  };

  KeptGraphPtr graph_for(const LiveNodes& nodes, const Request& request, const LiftedValues& values, bool builds_graph,
                         RunReport& report) const {
    if (KeptGraphPtr found = graphs_.find(builds_graph, values.facts)) return found;
    const auto start = std::chrono::steady_clock::now();
    const KeptGraphPtr nearest = graphs_.nearest(builds_graph, values.facts);
    if (nearest != nullptr) report.compile_reason = difference(*nearest, nodes, request, values.facts);
    const bool is_same_but_for_numbers = nearest != nullptr && nearest->baked.facts.constants == values.facts.constants;
    BakedFacts baked = is_same_but_for_numbers && dynamic_ == Dynamic::kAutomatic
                           ? nearest->baked.with_changes_dynamic(values.facts)
                           : baked_alone(values.facts, dynamic_);
    CompiledGraphPtr compiled = compiler_->compile({*plan_, *lowering_, nodes, values, baked, request});
    auto graph = std::make_shared<const KeptGraph>(KeptGraph{builds_graph, std::move(baked), std::move(compiled)});
    graphs_.keep(graph);
    report.has_compiled = true;
    report.compile_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return graph;
  }

  // How the facts of a graph differ from those of one that was kept, in words.
  std::optional<std::string> difference(const KeptGraph& kept, const LiveNodes& nodes, const Request& request,
                                        const Facts& facts) const {
    const auto mismatch = kept.baked.mismatch(facts);
    if (!mismatch.has_value()) return std::nullopt;
    FactPlaces places;
    static_cast<void>(lift_values(*plan_, nodes, request, &places));
    return describe(*mismatch, *plan_, places, kept.baked.facts, facts, dynamic_ == Dynamic::kAutomatic);
  }

  const PlanPtr plan_;
  const std::shared_ptr<const Lowering> lowering_;
  const std::shared_ptr<const GraphCompiler> compiler_;
  const Dynamic dynamic_;
  const bool follows_changes_;
  const std::shared_ptr<const ResumableExecutable> native_;
  mutable Graphs graphs_;
};

}  // namespace

ExecutablePtr GraphBackend::prepare(PlanPtr plan, std::shared_ptr<const Lowering> lowering) const {
  return std::make_shared<const GraphExecutable>(std::move(plan), std::move(lowering), compiler_, dynamic_,
                                                 follows_changes_, prepare_native_);
}

}  // namespace backbind
