// The arguments of the TPC-C procedures: the contents of a command record, so they are compact. Fixed layout; part of
// the log format. Below them, helpers of procedures for bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/types.h"

namespace dbx::tpcc {

inline constexpr ProcedureId kPayment{0};
inline constexpr ProcedureId kNewOrder{1};
inline constexpr ProcedureId kOrderStatus{2};
inline constexpr ProcedureId kDelivery{3};
inline constexpr ProcedureId kStockLevel{4};

// The standard's mix in percent, by procedure id.
inline constexpr std::array<uint32_t, 5> kFullMix = {43, 45, 4, 4, 4};

// How a terminal names a customer of a district: c_id, or kByLastName | number of the last name.
using CustomerName = uint16_t;
inline constexpr CustomerName kByLastName = 0x8000;
constexpr bool IsLastName(CustomerName customer) { return (customer & kByLastName) != 0; }
constexpr uint32_t LastNameOf(CustomerName customer) { return customer & ~uint32_t{kByLastName}; }

struct PaymentArgs {
  TxnId id;
  uint32_t date;
  uint32_t amount_cents;
  uint16_t w_id;
  uint16_t c_w_id;
  CustomerName customer;
  uint8_t d_id;
  uint8_t c_d_id;
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

struct OrderStatusArgs {
  TxnId id;
  uint16_t w_id;
  CustomerName customer;
  uint8_t d_id;
  uint8_t zero[3];
};
static_assert(sizeof(OrderStatusArgs) == 16);

// All ten districts of the warehouse.
struct DeliveryArgs {
  TxnId id;
  uint32_t date;
  uint16_t w_id;
  uint8_t carrier_id;
  uint8_t zero;
};
static_assert(sizeof(DeliveryArgs) == 16);

struct StockLevelArgs {
  TxnId id;
  uint16_t w_id;
  uint8_t d_id;
  uint8_t threshold;
  uint32_t zero;
};
static_assert(sizeof(StockLevelArgs) == 16);

template <class T>
std::span<const std::byte> TupleBytes(const T& tuple) {
  return std::as_bytes(std::span(&tuple, 1));
}

template <class T>
T LoadArgs(std::span<const std::byte> bytes, size_t at = 0) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Terminal output: keeps the compiler from dropping the computation.
inline void Show(int64_t value) { asm volatile("" : : "r"(value)); }

}  // namespace dbx::tpcc
