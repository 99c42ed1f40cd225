// The arguments of the TPC-C procedures: what a command record holds, so they are compact. Fixed layout; part of
// the log format.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace dbx::tpcc {

inline constexpr ProcedureId kPayment{0};
inline constexpr ProcedureId kNewOrder{1};

struct PaymentArgs {
  static constexpr uint16_t kByLastName = 0x8000;

  TxnId id;
  uint32_t date;
  uint32_t amount_cents;
  uint16_t w_id;
  uint16_t c_w_id;
  uint16_t customer;  // c_id, or kByLastName | number of the last name
  uint8_t d_id;
  uint8_t c_d_id;

  bool by_last_name() const { return (customer & kByLastName) != 0; }
  uint32_t last_name() const { return customer & ~uint32_t{kByLastName}; }
};
static_assert(sizeof(PaymentArgs) == 24);

// Followed by 5 to 15 of NewOrderLine; their number is known from the size.
struct NewOrderArgs {
  TxnId id;
  uint32_t entry_date;
  uint16_t w_id;
  uint16_t district_customer;  // d_id:4 c_id:12

  uint32_t d_id() const { return district_customer >> 12; }
  uint32_t c_id() const { return district_customer & 0xfffu; }
};
static_assert(sizeof(NewOrderArgs) == 16);

struct NewOrderLine {
  uint32_t i_id;
  uint16_t supply_w_id;
  uint16_t quantity;
};
static_assert(sizeof(NewOrderLine) == 8);

}  // namespace dbx::tpcc
