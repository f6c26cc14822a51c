// What makes something callable of a backward: it is above Python, and this is all that the rest knows of it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <memory>
#include <vector>

#include "graph/graph_run.h"
#include "graph/lifted_values.h"
#include "plan/facts.h"
#include "plan/lowering.h"
#include "plan/plan.h"

namespace backbind {

// A backward for which a graph is wanted.
struct GraphSource {
  const Plan& plan;
  const Lowering& lowering;
  const LiveNodes& nodes;
  const LiftedValues& values;
  const BakedFacts& baked;
  const Request& request;
};

// What a graph is called with, beside its tensors.
struct GraphArguments {
  std::vector<at::Tensor> tensors;
  std::vector<c10::SymInt> sizes;
  std::vector<Number> numbers;
  // The steps that run foreign code.
  std::vector<LiveStep> steps;
  // The first step, through which all of the run can be reached.
  LiveStep whole;
};

class CompiledGraph {
 public:
  CompiledGraph() = default;
  virtual ~CompiledGraph() = default;
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  // Returns the gradients that were asked for.
  virtual variable_list call(GraphArguments&& arguments) const = 0;
};

using CompiledGraphPtr = std::shared_ptr<const CompiledGraph>;

class GraphCompiler {
 public:
  GraphCompiler() = default;
  virtual ~GraphCompiler() = default;
  GraphCompiler(const GraphCompiler&) = delete;
  GraphCompiler& operator=(const GraphCompiler&) = delete;

  virtual CompiledGraphPtr compile(const GraphSource& source) const = 0;
};

}  // namespace backbind
