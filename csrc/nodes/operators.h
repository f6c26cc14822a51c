// Registers every binding as an operator of the dispatcher: torch.ops.backbind.<Node>.
#pragma once

namespace backbind {

// Defines all operators, once for the process; later calls do nothing.
void register_operators();

}  // namespace backbind
