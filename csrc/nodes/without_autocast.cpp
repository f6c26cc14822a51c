#include "nodes/without_autocast.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "nodes/autograd_keys.h"
#include "nodes/memory.h"

namespace backbind {

namespace {

constexpr std::string_view kAssertion = " INTERNAL ASSERT FAILED at ";
constexpr std::string_view kReport = ", please report a bug to PyTorch. ";

// The message alone: what() of torch's errors has the C++ stack after it, which takes milliseconds to look up.
std::string_view message_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch == nullptr ? error.what() : of_torch->what_without_backtrace();
}

// "indices.dim() >= dim" for the message of a failed assertion of torch, or nothing.
std::optional<std::string> failed_assertion(const std::exception& error) {
  const std::string_view message = message_of(error);
  const size_t end = message.find(kAssertion);
  if (end == std::string_view::npos) return std::nullopt;
  std::string failed("torch expected ");
  failed.append(message.substr(0, end));
  // What follows the request to report a bug, up to the end of its line, is the assertion's own explanation.
  if (const size_t report = message.find(kReport); report != std::string_view::npos) {
    const std::string_view rest = message.substr(report + kReport.size());
    const std::string_view explanation = rest.substr(0, rest.find('\n'));
    if (!explanation.empty()) failed.append(" (").append(explanation).append(")");
  }
  return failed;
}

[[noreturn]] void rethrow_readable(const Binding& binding, const std::exception& error) {
  const auto failed = failed_assertion(error);
  TORCH_CHECK(!failed, binding.name, ": the arguments do not fit together: ", *failed);
  throw;
}

}  // namespace

variable_list run_without_autocast(const Binding& binding, Binding::Apply apply, const variable_list& grads,
                                   const ivalue_list& arguments) {
  std::optional<c10::impl::ExcludeDispatchKeyGuard> without_autocast;
  const auto excluded = c10::impl::tls_local_dispatch_key_set().excluded_;
  if (!excluded.has_all(c10::autocast_dispatch_keyset)) [[unlikely]] {
    without_autocast.emplace(c10::autocast_dispatch_keyset);
  }
  // Below a step, a kernel of somebody's own may call operators.
  const StepScope outside_of_steps(false);
  check_memory(binding, grads, arguments);
  try {
    return apply(grads, arguments);
  } catch (const std::exception& error) {
    rethrow_readable(binding, error);
  }
}

}  // namespace backbind
