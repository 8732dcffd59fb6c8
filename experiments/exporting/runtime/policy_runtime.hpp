// The layers of exported policies. Sizes are template arguments. Weights are stored in blocks of
// kColumns outputs, so that the same layout serves vectors of every width. An exported header has
// the text of policy_numbers.hpp in front of this one.
#ifndef TROUPE_POLICY_RUNTIME_1
#define TROUPE_POLICY_RUNTIME_1

namespace troupe_policy {

/// Computes `kVectors` vectors of outputs: y = sum of x[i] * w[i]. `kWays` independent sums hide
/// the latency of an addition.
template <int kVectors, int kWays, int kInputs, int kStride, class Weight>
inline void multiply_columns(const Weight* w, const float* x, float* y) {
  constexpr int kTogether = kInputs / kWays * kWays;
  Vector sum[kWays][kVectors] = {};
  for (int i = 0; i < kTogether; i += kWays)
    for (int way = 0; way < kWays; ++way)
      for (int v = 0; v < kVectors; ++v) {
        Vector weight;
        load(w + (i + way) * kStride + v * kLanes, weight);
        sum[way][v] += x[i + way] * weight;
      }
  for (int i = kTogether; i < kInputs; ++i)
    for (int v = 0; v < kVectors; ++v) {
      Vector weight;
      load(w + i * kStride + v * kLanes, weight);
      sum[0][v] += x[i] * weight;
    }
  for (int v = 0; v < kVectors; ++v) {
    for (int way = 1; way < kWays; ++way)
      sum[0][v] += sum[way][v];
    std::memcpy(y + v * kLanes, &sum[0][v], sizeof(Vector));
  }
}

/// y [padded(kOutputs)] = x [kInputs] * w [kInputs, padded(kOutputs)], times `scale` if there is
/// one (int8), plus bias.
template <int kInputs, int kOutputs, class Weight>
inline void linear(const Weight* w, const float* scale, const float* bias, const float* x,
                   float* y) {
  constexpr int kWide = padded(kOutputs);
  constexpr int kBlock = kLanes >= 8 ? 8 : (kLanes == 4 ? 4 : 8); // vectors computed together
  constexpr int kAll = kWide / kLanes;
  constexpr int kWhole = kAll / kBlock;
  constexpr int kRest = kAll % kBlock;
  for (int block = 0; block < kWhole; ++block)
    multiply_columns<kBlock, 1, kInputs, kWide>(w + block * kBlock * kLanes, x,
                                                y + block * kBlock * kLanes);
  if constexpr (kRest > 0)
    multiply_columns<kRest, (kRest >= 4 ? 2 : (kRest >= 2 ? 4 : 8)), kInputs, kWide>(
        w + kWhole * kBlock * kLanes, x, y + kWhole * kBlock * kLanes);
  for (int j = 0; j < kWide; ++j)
    y[j] = (scale != nullptr ? y[j] * scale[j] : y[j]) + bias[j];
}

/// 1 / sqrt(y): Newton's method, starting from the halved exponent; needs no library function.
inline float inverse_root(float y) {
  std::int32_t bits;
  std::memcpy(&bits, &y, sizeof bits);
  bits = 0x5f3759df - (bits >> 1);
  float inverse;
  std::memcpy(&inverse, &bits, sizeof inverse);
  for (int i = 0; i < 4; ++i)
    inverse *= 1.5F - 0.5F * y * inverse * inverse;
  return inverse;
}

/// The sum of (x[i] - from)^kPower. Independent partial sums hide the latency of an addition.
template <int kPower, int kCount>
inline float sum(const float* x, float from) {
  float part[kColumns] = {};
  for (int i = 0; i < kCount; i += kColumns)
    for (int k = 0; k < kColumns && i + k < kCount; ++k)
      part[k] += kPower == 1 ? x[i + k] - from : (x[i + k] - from) * (x[i + k] - from);
  for (int width = kColumns / 2; width > 0; width /= 2)
    for (int k = 0; k < width; ++k)
      part[k] += part[k + width];
  return part[0];
}

template <int kCount>
inline void layer_norm(const float* gain, const float* bias, float* x) {
  const float mean = sum<1, kCount>(x, 0.0F) / kCount;
  const float inverse = inverse_root(sum<2, kCount>(x, mean) / kCount + 1e-5F);
  for (int i = 0; i < kCount; ++i)
    x[i] = (x[i] - mean) * inverse * gain[i] + bias[i];
}

/// Multiplies each of the first kInputs numbers by its gain and adds its bias; the others are set
/// to their bias.
template <int kInputs, int kOutputs>
inline void affine(const float* gain, const float* bias, float* x) {
  for (int i = 0; i < kInputs; ++i)
    x[i] = x[i] * gain[i] + bias[i];
  for (int i = kInputs; i < kOutputs; ++i)
    x[i] = bias[i];
}

/// Divides a vector by its length, or by 1e-8 if that is greater.
template <int kCount>
inline void unit_length(float* x) {
  const float squares = sum<2, kCount>(x, 0.0F);
  const float inverse = inverse_root(squares > 1e-16F ? squares : 1e-16F);
  for (int i = 0; i < kCount; ++i)
    x[i] *= inverse;
}

/// x = kept + gain * (x - kept); without a gain, x = kept + x.
template <int kCount>
inline void add_kept(const float* kept, const float* gain, float* x) {
  for (int i = 0; i < kCount; ++i)
    x[i] = kept[i] + (gain != nullptr ? gain[i] * (x[i] - kept[i]) : x[i]);
}

/// One step of an LSTM. x: [kInputs] with room for kSize more numbers; gates: [padded(4 * kSize)];
/// state: hidden [kSize], cell [kSize]. The output is the hidden part, which is also written to x.
template <int kInputs, int kSize, class Weight>
inline void lstm(const Weight* w, const float* scale, const float* bias, float* x, float* gates,
                 float* state) {
  float* hidden = state;
  float* cell = state + kSize;
  std::memcpy(x + kInputs, hidden, kSize * sizeof(float));
  linear<kInputs + kSize, 4 * kSize>(w, scale, bias, x, gates);
  activate<Activation::sigmoid, 3 * kSize>(gates);
  activate<Activation::tanh, kSize>(gates + 3 * kSize);
  for (int i = 0; i < kSize; ++i)
    hidden[i] = cell[i] = gates[kSize + i] * cell[i] + gates[i] * gates[3 * kSize + i];
  activate<Activation::tanh, kSize>(hidden);
  for (int i = 0; i < kSize; ++i)
    hidden[i] *= gates[2 * kSize + i];
  std::memcpy(x, hidden, kSize * sizeof(float));
}

/// A convolution. Pictures are [height, width, channels] inside the policy. `patch` has room for
/// kKernel * kKernel * kChannels numbers, and `row` for padded(kOutputs).
template <int kChannels, int kHeight, int kWidth, int kOutputs, int kKernel, int kStride,
          Activation kActivation, class Weight>
inline void convolution(const Weight* w, const float* scale, const float* bias, const float* x,
                        float* y, float* patch, float* row) {
  constexpr int kRows = (kHeight - kKernel) / kStride + 1;
  constexpr int kColumnsOut = (kWidth - kKernel) / kStride + 1;
  constexpr int kPatchRow = kKernel * kChannels;
  for (int v = 0; v < kRows; ++v)
    for (int u = 0; u < kColumnsOut; ++u, y += kOutputs) {
      for (int k = 0; k < kKernel; ++k)
        std::memcpy(patch + k * kPatchRow,
                    x + ((v * kStride + k) * kWidth + u * kStride) * kChannels,
                    kPatchRow * sizeof(float));
      linear<kKernel * kPatchRow, kOutputs>(w, scale, bias, patch, row);
      activate<kActivation, padded(kOutputs)>(row);
      std::memcpy(y, row, kOutputs * sizeof(float));
    }
}

/// Converts bytes [channels, height, width] to numbers [height, width, channels].
template <int kChannels, int kPlane>
inline void enter_picture(const std::uint8_t* picture, float scale, float offset, float* x) {
  for (int pixel = 0; pixel < kPlane; ++pixel)
    for (int c = 0; c < kChannels; ++c)
      *x++ = static_cast<float>(picture[c * kPlane + pixel]) * scale + offset;
}

/// Transposes numbers [plane, channels] to [channels, plane].
template <int kChannels, int kPlane>
inline void by_channel(const float* x, float* y) {
  for (int c = 0; c < kChannels; ++c)
    for (int pixel = 0; pixel < kPlane; ++pixel)
      *y++ = x[pixel * kChannels + c];
}

inline int largest(const float* values, int count) {
  int best = 0;
  for (int i = 1; i < count; ++i)
    if (values[i] > values[best])
      best = i;
  return best;
}

/// The choice with the greatest mean of its distribution over equidistant values.
inline int largest_mean(const float* logits, int choices, int atoms, float minimum, float maximum) {
  int best = 0;
  float most = 0.0F;
  for (int choice = 0; choice < choices; ++choice, logits += atoms) {
    const float greatest = logits[largest(logits, atoms)];
    float weights = 0.0F;
    float sum = 0.0F;
    for (int k = 0; k < atoms; ++k) {
      const float weight = exponential(logits[k] - greatest);
      weights += weight;
      sum +=
          weight
          * (minimum + (maximum - minimum) * static_cast<float>(k) / static_cast<float>(atoms - 1));
    }
    const float mean = sum / weights;
    if (choice == 0 || mean > most) {
      most = mean;
      best = choice;
    }
  }
  return best;
}

inline bool all_finite(const float* x, int count) {
  bool finite = true;
  for (int i = 0; i < count; ++i)
    finite = finite && x[i] - x[i] == 0.0F;
  return finite;
}

inline bool all_finite(const std::uint8_t*, int) {
  return true;
}

inline float limited(float x, float least, float most) {
  return x < least ? least : (x > most ? most : x);
}

/// Describes a number of an observation or action. A choice has minimum 0 and maximum n - 1.
struct Element {
  const char* name;
  const char* unit;
  float minimum; // for an action; 0 and 0: unbounded
  float maximum;
};

/// The inputs and outputs that a policy was trained with, or that a machine provides and takes.
struct Contract {
  const char* task;
  const Element* observation; // in order; a picture is one element
  int observation_size;
  const Element* action;
  int action_size;
  int history; // number of frames in an observation, oldest first
  double control_period_seconds;
};

/// Compares the members in order, except the task. If they differ, writes the first difference by
/// name into `message` (may be null) and returns false.
inline bool check_contract(const Contract& policy, const Contract& machine, char* message,
                           std::size_t size) {
  const auto refuse = [&](const char* what, int number, const char* wanted, const char* found) {
    if (message != nullptr && size > 0)
      std::snprintf(message, size, "%s %d: the policy has '%s', the machine '%s'", what, number,
                    wanted, found);
    return false;
  };
  const auto refuse_number = [&](const char* what, double wanted, double found) {
    if (message != nullptr && size > 0)
      std::snprintf(message, size, "%s: the policy has %g, the machine %g", what, wanted, found);
    return false;
  };
  const auto check = [&](const char* what, const char* unit_of, const char* least_of,
                         const char* most_of, const Element* wanted, const Element* found,
                         int count) {
    for (int i = 0; i < count; ++i) {
      if (std::strcmp(wanted[i].name, found[i].name) != 0)
        return refuse(what, i, wanted[i].name, found[i].name);
      if (std::strcmp(wanted[i].unit, found[i].unit) != 0)
        return refuse(unit_of, i, wanted[i].unit, found[i].unit);
      if (wanted[i].minimum < found[i].minimum || wanted[i].minimum > found[i].minimum)
        return refuse_number(least_of, static_cast<double>(wanted[i].minimum),
                             static_cast<double>(found[i].minimum));
      if (wanted[i].maximum < found[i].maximum || wanted[i].maximum > found[i].maximum)
        return refuse_number(most_of, static_cast<double>(wanted[i].maximum),
                             static_cast<double>(found[i].maximum));
    }
    return true;
  };
  if (policy.observation_size != machine.observation_size)
    return refuse_number("elements of an observation", policy.observation_size,
                         machine.observation_size);
  if (!check("observation", "unit of observation", "minimum of an observation",
             "maximum of an observation", policy.observation, machine.observation,
             policy.observation_size))
    return false;
  if (policy.action_size != machine.action_size)
    return refuse_number("elements of an action", policy.action_size, machine.action_size);
  if (!check("action", "unit of action", "minimum of an action", "maximum of an action",
             policy.action, machine.action, policy.action_size))
    return false;
  if (policy.history != machine.history)
    return refuse_number("history in frames", policy.history, machine.history);
  const double difference = policy.control_period_seconds - machine.control_period_seconds;
  if (difference > 1e-9 || difference < -1e-9)
    return refuse_number("control period in seconds", policy.control_period_seconds,
                         machine.control_period_seconds);
  return true;
}

} // namespace troupe_policy

#endif
