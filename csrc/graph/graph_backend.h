// The graph backends: a backward is printed as a graph, compiled, kept, and called with the values of later backwards.
#pragma once

#include <memory>

#include "graph/compiler.h"
#include "plan/executable.h"

namespace backbind {

// Which sizes and numbers are given to a graph at each run rather than baked in.
enum class Dynamic : uint8_t {
  kAutomatic,  // those that were seen to change
  kNever,
  kAlways,
};

// Makes what runs a plan natively, for what a graph cannot do.
using PrepareNative = std::shared_ptr<const ResumableExecutable> (*)(PlanPtr plan,
                                                                     std::shared_ptr<const Lowering> lowering);

class GraphBackend final : public Backend {
 public:
  // `follows_changes` tells whether what the compiler makes can be left where a user's code changes what lies ahead.
  GraphBackend(std::shared_ptr<const GraphCompiler> compiler, Dynamic dynamic, bool follows_changes,
               PrepareNative prepare_native)
      : compiler_(std::move(compiler)),
        dynamic_(dynamic),
        follows_changes_(follows_changes),
        prepare_native_(prepare_native) {}

  ExecutablePtr prepare(PlanPtr plan, std::shared_ptr<const Lowering> lowering) const override;

 private:
  const std::shared_ptr<const GraphCompiler> compiler_;
  const Dynamic dynamic_;
  const bool follows_changes_;
  const PrepareNative prepare_native_;
};

}  // namespace backbind
