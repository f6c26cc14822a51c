#include "nodes/purity.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace backbind {

variable_list run_pure(Binding::Apply apply, const variable_list& grads, const ivalue_list& arguments) {
  std::optional<c10::impl::ExcludeDispatchKeyGuard> without_autocast;
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  if (!excluded.has_all(c10::autocast_dispatch_keyset)) [[unlikely]] {
    without_autocast.emplace(c10::autocast_dispatch_keyset);
  }
  return apply(grads, arguments);
}

}  // namespace backbind
