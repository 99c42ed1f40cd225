#include "logging/device/striped_device.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/check.h"
#include "logging/format.h"

namespace dbx {

uint64_t BytesInStripe(uint64_t bytes, size_t index, size_t count, uint64_t unit_bytes) {
  const uint64_t row_bytes = unit_bytes * count, in_row = bytes % row_bytes, before = unit_bytes * index;
  return bytes / row_bytes * unit_bytes + std::min(unit_bytes, in_row - std::min(in_row, before));
}

StripedDevice::StripedDevice(std::vector<std::unique_ptr<BlockDevice>> stripes, uint64_t own_bytes, uint64_t unit_bytes)
    : stripes_(std::move(stripes)),
      is_memory_(std::all_of(stripes_.begin(), stripes_.end(), [](const auto& stripe) { return stripe->is_memory(); })),
      own_bytes_(own_bytes),
      unit_bytes_(unit_bytes) {
  CHECK(!stripes_.empty() && unit_bytes_ > 0 && unit_bytes_ % format::kBlockBytes == 0);
}

StripedDevice::Piece StripedDevice::PieceAt(uint64_t offset, size_t bytes) const {
  const uint64_t position = offset - own_bytes_;
  const uint64_t unit = position / unit_bytes_, within = position % unit_bytes_;
  return {static_cast<size_t>(unit % stripes_.size()), own_bytes_ + unit / stripes_.size() * unit_bytes_ + within,
          std::min<size_t>(bytes, unit_bytes_ - within)};
}

uint64_t StripedDevice::FirstBehind(size_t stripe, uint64_t end) const {
  const uint64_t local = end > own_bytes_ ? end - own_bytes_ : 0;
  const uint64_t unit = local / unit_bytes_ * stripes_.size() + stripe;
  return own_bytes_ + unit * unit_bytes_ + local % unit_bytes_;
}

void StripedDevice::StartWrite(uint64_t offset, std::span<const std::byte> data) {
  CHECK(offset >= own_bytes_);
  while (!data.empty()) {
    const Piece piece = PieceAt(offset, data.size());
    stripes_[piece.stripe]->StartWrite(piece.offset, data.first(piece.bytes));
    offset += piece.bytes;
    data = data.subspan(piece.bytes);
  }
}

uint64_t StripedDevice::Complete(bool wait) {
  uint64_t end = UINT64_MAX;
  for (size_t i = 0; i < stripes_.size(); ++i) end = std::min(end, FirstBehind(i, stripes_[i]->Complete(wait)));
  return end;
}

size_t StripedDevice::Read(uint64_t offset, std::span<std::byte> to) {
  const uint64_t size = SizeBytes();
  if (offset >= size) return 0;
  to = to.first(std::min<uint64_t>(to.size(), size - offset));
  if (to.size() >= kAtOnceBytesMin && !is_memory_) {
    ReadSharesAtOnce(offset, to);
  } else {
    for (size_t stripe = 0; stripe < stripes_.size(); ++stripe) ReadShare(stripe, offset, to);
  }
  return to.size();
}

void StripedDevice::ReadShare(size_t stripe, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const Piece piece = PieceAt(offset, to.size());
    if (piece.stripe == stripe) {
      const size_t got = stripes_[stripe]->Read(piece.offset, to.first(piece.bytes));
      std::memset(to.data() + got, 0, piece.bytes - got);
    }
    offset += piece.bytes;
    to = to.subspan(piece.bytes);
  }
}

void StripedDevice::ReadSharesAtOnce(uint64_t offset, std::span<std::byte> to) {
  while (shares_.size() < stripes_.size()) shares_.push_back(std::make_unique<BackgroundRead>());
  // This function must not return while another stripe is still read into `to`.
  std::exception_ptr first_error;
  const auto guard = [&](auto&& step) {
    try {
      step();
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  };
  // The first unit's stripe is read here, those of the next ones by the others.
  const uint64_t first = (offset - own_bytes_) / unit_bytes_;
  const uint64_t last = (offset - own_bytes_ + to.size() - 1) / unit_bytes_;
  const uint64_t count = stripes_.size();
  for (uint64_t unit = first + 1; unit <= last && unit < first + count; ++unit) {
    guard([&] {
      shares_[unit % count]->Start([=, this] {
        ReadShare(unit % count, offset, to);
        return to.size();
      });
    });
  }
  guard([&] { ReadShare(first % count, offset, to); });
  for (const auto& share : shares_) {
    if (share->started()) guard([&] { share->Take(); });
  }
  if (first_error) std::rethrow_exception(first_error);
}

uint64_t StripedDevice::SizeBytes() {
  uint64_t size = 0;
  for (size_t i = 0; i < stripes_.size(); ++i) {
    const uint64_t bytes = stripes_[i]->SizeBytes();
    // The last byte of the stripe, and one.
    if (bytes > own_bytes_) size = std::max(size, FirstBehind(i, bytes - 1) + 1);
  }
  return size;
}

std::string StripedDevice::PlaceOf(uint64_t offset) const {
  if (offset < own_bytes_) return stripes_.front()->PlaceOf(offset);
  const Piece piece = PieceAt(offset, 1);
  return stripes_[piece.stripe]->PlaceOf(piece.offset);
}

}  // namespace dbx
