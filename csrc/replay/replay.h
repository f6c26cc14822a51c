// The native backend: executes a lowering on the nodes of a live graph, as one flat loop.
#pragma once

#include "plan/executable.h"

namespace backbind {

class NativeBackend final : public Backend {
 public:
  ExecutablePtr prepare(PlanPtr plan, std::shared_ptr<const Lowering> lowering) const override;
  // The same, for backends that may have to stop in the middle of a backward.
  static std::shared_ptr<const ResumableExecutable> prepare_resumable(PlanPtr plan,
                                                                      std::shared_ptr<const Lowering> lowering);
};

// One for the process.
BackendPtr native_backend();

}  // namespace backbind
