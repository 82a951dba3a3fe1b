// Sub-pixel convolutions, losses and gradients of the auxiliary decoders, fused for a CPU.
//
// Feature positions are the lanes of a vector, T of them make a tile. A decoder goes depth-first
// through the sub-pixels of a tile: level l maps B x T values to 4 blocks of B (at last C) x T,
// each passes the levels below and comes back as a gradient, then level l's own backward pass runs.
// So a decoder holds one block a level, in the first-level cache, and no prediction exists. A
// product fills registers with ROWS x T results: one operand is broadcast, the other is read in
// vectors. Threads take contiguous ranges of tiles and sum the parameters' gradients apart; these
// are added in order, so that as many threads give the same result at each run.
//
// native_chain.py compiles it with LEVELS, WIDTH (B), CLASSES (C) and FINAL_RELU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 12;
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS = 6;
#else
constexpr int LANES = 4, ROWS = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t Int __attribute__((vector_size(4 * LANES)));
#define INLINE static inline __attribute__((always_inline))

constexpr int T = 2 * LANES, L = LEVELS, B = WIDTH, C = CLASSES, WIDEST = B > C ? B : C;
constexpr int SUBPIXELS = 1 << 2 * L;
constexpr int outputs(int level) { return 4 * (level == L - 1 ? C : B); }
constexpr int padded(int n) { return (n + T - 1) / T * T; }
constexpr bool activates(int level) { return FINAL_RELU || level < L - 1; }

INLINE void store(float *p, Vec v) { std::memcpy(p, &v, sizeof v); }
INLINE Vec load(const float *p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
INLINE Vec same(float x) { return x - Vec{}; }

// e^x = 2^n 2^f for x <= 0, n whole, |f| <= 1/2; off by less than 2e-7.
INLINE Vec exponential(Vec x) {
  const Vec wanted = x * 1.44269504f, t = wanted < -126.f ? same(-126.f) : wanted;
  const Vec shifted = t + 12582912.f;  // 1.5 * 2^23: the last bits are n
  const Vec f = t - (shifted - 12582912.f);
  Vec p = f * 1.33952e-3f + 9.67602e-3f;
  p = p * f + 5.550327e-2f;
  p = p * f + 2.4022633e-1f;
  p = p * f + 6.9314721e-1f;
  p = p * f + 1.f;
  return (Vec)((Int)p + ((Int)shifted << 23));
}

// The powers e^(y - top) of the classes, whose values are `stride` apart; returns their sum.
INLINE Vec powers(const float *y, int stride, Vec top, Vec *power) {
  Vec sum = {};
  for (int c = 0; c < C; ++c) sum += power[c] = exponential(load(y + c * stride) - top);
  return sum;
}

// NaN if one of n values, a multiple of LANES, is not finite; else 0.
INLINE float poison(const float *p, int n) {
  Vec sum = {};
  for (int i = 0; i < n; i += LANES) sum += load(p + i) * 0.f;
  float total = 0;
  for (int i = 0; i < LANES; ++i) total += sum[i];
  return total;
}

enum Start { ZERO, BIAS, ADD };

// R rows of `product`.
template <int R, Start start, bool relu, int INNER, int AR, int AC>
INLINE void rows(const float *a, const float *b, int ldb, float *out, int ldo, const float *bias) {
  Vec sum[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < 2; ++j)
      sum[r][j] = start == ADD ? load(out + r * ldo + j * LANES) : same(start ? bias[r] : 0);
  for (int k = 0; k < INNER; ++k) {
    const Vec b0 = load(b + k * ldb), b1 = load(b + k * ldb + LANES);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec factor = same(a[r * AR + k * AC]);
      sum[r][0] += factor * b0;
      sum[r][1] += factor * b1;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < 2; ++j)
      store(out + r * ldo + j * LANES, relu && sum[r][j] < 0.f ? Vec{} : sum[r][j]);
}

// out (M x T) = start + a (M x INNER, strides AR and AC) b (INNER x T)
template <int M, Start start, bool relu, int INNER, int AR, int AC>
static void product(const float *a, const float *b, int ldb, float *out, int ldo,
                    const float *bias = nullptr) {
  constexpr int tiles = (M + ROWS - 1) / ROWS, R = (M + tiles - 1) / tiles, n = M / R * R;
  for (int i = 0; i < n; i += R)
    rows<R, start, relu, INNER, AR, AC>(a + i * AR, b, ldb, out + i * ldo, ldo, bias + i);
  if constexpr (M > n)
    rows<M - n, start, relu, INNER, AR, AC>(a + n * AR, b, ldb, out + n * ldo, ldo, bias + n);
}

template <std::size_t... i>
INLINE Vec zip(Vec a, Vec b, bool second, std::index_sequence<i...>) {
  return second ? __builtin_shufflevector(a, b, (i % 2 * LANES + LANES / 2 + i / 2)...)
                : __builtin_shufflevector(a, b, (i % 2 * LANES + i / 2)...);
}

// Transposes LANES x LANES values, by log2(LANES) perfect shuffles of the rows.
INLINE void transpose(Vec *square) {
#pragma GCC unroll 4
  for (int step = 1; step < LANES; step *= 2) {
    Vec next[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i)
      next[i] = zip(square[i / 2], square[i / 2 + LANES / 2], i % 2,
                    std::make_index_sequence<LANES>());
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) square[i] = next[i];
  }
}

// Maps (s^2, p) of an iteration: weights of the squared error and of the cross-entropy, its labels.
enum Map { SQUARED, ENTROPY, LABELS, MAPS };
// What the predictions at p positions are compared with; sub-pixels as in subpixel.py.
struct Targets {
  const float *seg_logits, *maps[MAPS];  // (C, s^2, p), the main decoder's; maps may be null
  float *agreeing;                       // (s^2, p), written: the decoders that choose its class
  float factors[2];                      // of squared error and cross-entropy in the total
};
struct alignas(64) Tile {
  float probabilities[SUBPIXELS][C][T], maps[MAPS][SUBPIXELS][T];
  float main_class[SUBPIXELS][T], agreeing[SUBPIXELS][T];
};
// A decoder's activations and gradients at one tile, and the sums of its losses.
struct alignas(64) Blocks {
  float x[B * T], dx[B * T], y[L][4 * WIDEST * T], dy[L][4 * WIDEST * T];
  float transposed[T * padded(4 * WIDEST)];
  Vec sums[2];
};
// By level: gradient of the weights, transposed and padded, with the biases' as the last row.
struct alignas(64) Gradients {
  float of[L][(B + 1) * padded(4 * WIDEST)];
};

// Counts the agreement at LANES predictions y, whose classes are 4 T apart; returns their maximum.
INLINE Vec vote(const float *y, const float *main_class, float *agreeing) {
  Vec top = load(y), chosen = top;
  for (int c = 1; c < C; ++c) {
    const Vec v = load(y + c * 4 * T);
    top = v > top ? v : top;
    chosen = load(main_class) == (float)c ? v : chosen;
  }
  store(agreeing, load(agreeing) + (chosen == top ? same(1) : Vec{}));
  return top;
}

// Losses at LANES predictions y, and their gradient dy.
INLINE void differentiate(const float *y, float *dy, Tile &tile, int pixel, int j,
                          const Targets &targets, Blocks &blocks) {
  Vec power[C];
  const Vec top = vote(y, tile.main_class[pixel] + j, tile.agreeing[pixel] + j);
  const Vec sum = powers(y, 4 * T, top, power), norm = 1.f / sum;
  if (targets.maps[SQUARED]) {
    Vec square = {}, dot = {};
    for (int c = 0; c < C; ++c) {
      const Vec difference = power[c] * norm - load(tile.probabilities[pixel][c] + j);
      square += difference * difference;
      dot += power[c] * difference;
    }
    dot *= norm;
    const Vec weight = load(tile.maps[SQUARED][pixel] + j) * (1.f / C);
    const Vec factor = weight * norm * (2 * targets.factors[SQUARED]);
    for (int c = 0; c < C; ++c) {
      const Vec difference = power[c] * norm - load(tile.probabilities[pixel][c] + j);
      store(dy + c * 4 * T, power[c] * factor * (difference - dot));
    }
    blocks.sums[SQUARED] += square * weight;
  }
  if (targets.maps[ENTROPY]) {
    const Vec weight = load(tile.maps[ENTROPY][pixel] + j);
    Vec chosen = {}, logarithm;
    for (int c = 0; c < C; ++c) {
      const auto here = load(tile.maps[LABELS][pixel] + j) == (float)c;
      chosen = here ? load(y + c * 4 * T) : chosen;
      const Vec error = power[c] * norm - (here ? same(1) : Vec{});
      const Vec grad = weight * targets.factors[ENTROPY] * error;
      store(dy + c * 4 * T, targets.maps[SQUARED] ? load(dy + c * 4 * T) + grad : grad);
    }
    for (int i = 0; i < LANES; ++i) logarithm[i] = std::log(sum[i]);
    blocks.sums[ENTROPY] += weight * (logarithm + top - chosen);
  }
}

// Hessian (diag q - q q^T) of the divergence from LANES predictions y times dy, in place of dy.
INLINE void fisher(const float *y, float *dy) {
  Vec power[C], top = load(y), dot = {};
  for (int c = 1; c < C; ++c) top = load(y + c * 4 * T) > top ? load(y + c * 4 * T) : top;
  const Vec norm = 1.f / powers(y, 4 * T, top, power);
  for (int c = 0; c < C; ++c) dot += power[c] * norm * load(dy + c * 4 * T);
  for (int c = 0; c < C; ++c)
    store(dy + c * 4 * T, power[c] * norm * (load(dy + c * 4 * T) - dot));
}

enum Pass { VOTE, LEARN, FISHER };

// Runs decoder k from level l on; x has B rows, ldx apart. Its gradient takes dx's place.
template <int l, Pass pass>
static void descend(const float *const *parameters, int64_t k, const float *x, float *dx,
                    Blocks &blocks, Tile &tile, int pixel, const Targets &targets,
                    Gradients *gradients) {
  constexpr int O = outputs(l), P = padded(O), ldx = l ? 4 * T : T;
  const float *const weight = parameters[l] + k * O * B, *const bias = parameters[L + l] + k * O;
  float *const y = blocks.y[l], *const dy = blocks.dy[l];
  const auto pass_relu = [&] {
    for (int i = 0; activates(l) && i < O * T; i += LANES)
      store(dy + i, load(y + i) > 0.f ? load(dy + i) : Vec{});
  };
  product<O, BIAS, activates(l), B, B, 1>(weight, x, ldx, y, T, bias);
  if constexpr (pass == FISHER) {
    product<O, ZERO, false, B, B, 1>(weight, dx, ldx, dy, T);
    pass_relu();
  }
  for (int r = 0; r < 4 * T; r += T) {
    const int below = pixel + (r / T << 2 * l);
    if constexpr (l < L - 1)
      descend<l + 1, pass>(parameters, k, y + r, dy + r, blocks, tile, below, targets, gradients);
    else
      for (int j = 0, at = r; j < T; j += LANES, at += LANES) {
        if (pass == VOTE) vote(y + at, tile.main_class[below] + j, tile.agreeing[below] + j);
        if (pass == FISHER) fisher(y + at, dy + at);
        if (pass == LEARN) differentiate(y + at, dy + at, tile, below, j, targets, blocks);
      }
  }
  if constexpr (pass == VOTE) return;
  pass_relu();
  product<B, ZERO, false, O, 1, B>(weight, dy, T, dx, ldx);
  if constexpr (pass == FISHER) return;
  for (int o = 0; o < O; o += LANES)
    for (int j = 0; j < T; j += LANES) {
      Vec square[LANES];
#pragma GCC unroll 16
      for (int i = 0; i < LANES; ++i) square[i] = o + i < O ? load(dy + (o + i) * T + j) : Vec{};
      transpose(square);
#pragma GCC unroll 16
      for (int i = 0; i < LANES; ++i) store(blocks.transposed + (j + i) * P + o, square[i]);
    }
  for (int o = 0; o < P; o += T) {
    constexpr float one = 1;
    float *const grad = gradients->of[l] + o, *const part = blocks.transposed + o;
    product<B, ADD, false, T, ldx, 1>(x, part, P, grad, P);
    product<1, ADD, false, T, 0, 0>(&one, part, P, grad + B * P, P);
  }
}

static void read(const Targets &targets, int64_t size, int64_t first, Tile &tile) {
  for (int pixel = 0; pixel < SUBPIXELS; ++pixel)
    for (int j = 0; j < T; j += LANES) {
      const int64_t at = pixel * size + first + j;
      const float *const logits = targets.seg_logits + at;
      Vec top = load(logits), main_class = {}, power[C];
      for (int c = 1; c < C; ++c) {
        const Vec v = load(logits + c * SUBPIXELS * size);
        main_class = v > top ? same(c) : main_class;
        top = v > top ? v : top;
      }
      const Vec norm = 1.f / powers(logits, SUBPIXELS * size, top, power);
      for (int c = 0; c < C; ++c) store(tile.probabilities[pixel][c] + j, power[c] * norm);
      store(tile.main_class[pixel] + j, main_class);
      store(tile.agreeing[pixel] + j, Vec{});
      for (int i = 0; i < MAPS; ++i)
        if (targets.maps[i]) store(tile.maps[i][pixel] + j, load(targets.maps[i] + at));
    }
}

// Copies T columns of (B x size) features to a block, or `back`.
static void copy(float *features, int64_t size, float *block, bool back = false) {
  for (int b = 0; b < B; ++b, features += size, block += T)
    std::memcpy(back ? features : block, back ? block : features, sizeof(float) * T);
}

// Calls work(thread, first position) for all tiles, a contiguous range a thread.
template <class Work>
static void parallel(int64_t threads, int64_t size, Work work) {
  const auto range = [&](int64_t thread) {
    for (int64_t i = size / T * thread / threads; i < size / T * (thread + 1) / threads; ++i)
      work(thread, i * T);
  };
  std::vector<std::thread> others;
  for (int64_t thread = 1; thread < threads; ++thread) others.emplace_back(range, thread);
  range(0);
  for (auto &other : others) other.join();
}

extern "C" const int native_tile = T;

// Gradients take the place of the features (K, B, p), p a multiple of T, and are added to `grads`,
// the losses to `values` (2, K). Parameters and their gradients: L weights, then L biases. In a tile
// where all weights are 0 only the agreement is counted, unless a value is not finite: 0 times NaN is
// NaN, which the loss must show.
extern "C" void native_losses(int64_t threads, int64_t decoders, int64_t size, float *features,
                              const float *const *parameters, float *const *grads,
                              const Targets *targets, double *values) {
  std::vector<Gradients> gradients(threads * decoders);
  std::vector<double> sums(threads * 2 * decoders);
  std::vector<Tile> tiles(threads);
  std::vector<Blocks> blocks(threads);
  const auto broken = [](float value) { return !std::isfinite(value); };
  bool broken_parameters = false;
  for (int i = 0; i < 2 * L; ++i)
    broken_parameters |= std::any_of(
        parameters[i], parameters[i] + decoders * outputs(i % L) * (i < L ? B : 1), broken);
  parallel(threads, size, [&](int64_t thread, int64_t first) {
    Tile &tile = tiles[thread];
    Blocks &own = blocks[thread];
    read(*targets, size, first, tile);
    const bool all_count =
        broken_parameters || poison(tile.probabilities[0][0], SUBPIXELS * C * T) ||
        std::any_of(tile.maps[0][0], tile.maps[LABELS][0], [](float w) { return w != 0; });
    for (int64_t k = 0; k < decoders; ++k) {
      float *const at = features + k * B * size + first;
      copy(at, size, own.x);
      own.sums[SQUARED] = own.sums[ENTROPY] = Vec{};
      std::memset(own.dx, 0, sizeof own.dx);
      const bool counts = all_count || poison(own.x, B * T);
      Gradients *const of = counts ? &gradients[thread * decoders + k] : nullptr;
      const auto run = counts ? descend<0, LEARN> : descend<0, VOTE>;
      run(parameters, k, own.x, own.dx, own, tile, 0, *targets, of);
      copy(at, size, own.dx, true);
      for (int i = 0; i < 2 * LANES; ++i)
        sums[(thread * 2 + i % 2) * decoders + k] += own.sums[i % 2][i / 2];
    }
    for (int pixel = 0; pixel < SUBPIXELS; ++pixel)
      std::memcpy(targets->agreeing + pixel * size + first, tile.agreeing[pixel], 4 * T);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) values[i % (2 * decoders)] += sums[i];
  for (std::size_t i = 0; i < gradients.size(); ++i)
    for (int l = 0; l < L; ++l)
      for (int o = 0; o < outputs(l); ++o) {
        const int64_t row = i % decoders * outputs(l) + o;
        const float *const of = gradients[i].of[l] + o;
        for (int b = 0; b < B; ++b) grads[l][row * B + b] += of[b * padded(outputs(l))];
        grads[L + l][row] += of[B * padded(outputs(l))];
      }
}

// Multiplies `tangents` by the Fisher matrix of the predictions at `features`, both (K, B, p).
extern "C" void native_fisher(int64_t threads, int64_t decoders, int64_t size, float *features,
                              const float *const *parameters, float *tangents) {
  std::vector<Tile> none(1);
  std::vector<Blocks> blocks(threads);
  parallel(threads, size, [&](int64_t thread, int64_t first) {
    Blocks &own = blocks[thread];
    for (int64_t k = 0; k < decoders; ++k) {
      copy(features + k * B * size + first, size, own.x);
      copy(tangents + k * B * size + first, size, own.dx);
      descend<0, FISHER>(parameters, k, own.x, own.dx, own, none[0], 0, {}, nullptr);
      copy(tangents + k * B * size + first, size, own.dx, true);
    }
  });
}
