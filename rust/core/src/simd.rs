//! Which vector instructions the kernels may use, and the one way to use them.
//!
//! A [`Kernel`] is compiled once for each [`Level`]. Plain loops in it are vectorised by the compiler for the level; code
//! that is written by hand asks the token that it is given.

use std::sync::OnceLock;

/// A set of vector instructions that this machine has.
///
/// All but the portable one hold a token that only this module makes, and only after the features were detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every machine of the target has: 128-bit vectors, NEON on 64-bit ARM.
    Portable,
    /// 256-bit integer vectors and the bit instructions that came with them.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// 512-bit integer vectors with a multiplication that adds (VNNI), as all server processors have since 2022.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// Shows nothing: every machine has this level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portable;

/// Shows that this machine has `avx2`, `bmi1`, `bmi2`, `lzcnt` and `popcnt`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

/// Shows that this machine has, beside those of [`Avx2`], `avx512f`, `avx512bw`, `avx512dq`, `avx512vl` and `avx512vnni`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

/// The token of a level, by whose type a kernel is compiled for it.
pub trait Simd: Copy {
    /// The level itself; in a kernel the compiler knows which one it is.
    fn level(self) -> Level;
}

impl Simd for Portable {
    #[inline(always)]
    fn level(self) -> Level {
        Level::Portable
    }
}

#[cfg(target_arch = "x86_64")]
impl Simd for Avx2 {
    #[inline(always)]
    fn level(self) -> Level {
        Level::Avx2(self)
    }
}

#[cfg(target_arch = "x86_64")]
impl Simd for Avx512 {
    #[inline(always)]
    fn level(self) -> Level {
        Level::Avx512(self)
    }
}

/// Work that is compiled once for each level.
pub trait Kernel {
    /// What the work gives.
    type Output;

    /// Do the work.
    ///
    /// Implementations are `#[inline(always)]`, and so is what they call in their loops: the features of a level reach
    /// only what is inlined into its dispatch.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

impl Level {
    /// The best level of this machine.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::Portable))
    }

    /// Every level that this machine has, the plainest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
        {
            levels.push(Self::Avx2(Avx2(())));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
            {
                levels.push(Self::Avx512(Avx512(())));
            }
        }
        levels
    }

    /// The level of this name, where this machine has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().into_iter().find(|level| level.name() == name)
    }

    /// The name by which tests and benchmarks force this level.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512",
        }
    }

    /// This level, or the next one below it whose vectors have at most 256 bits.
    #[must_use]
    pub fn at_most_256_bits(self) -> Self {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(Avx512(())) => Self::Avx2(Avx2(())),
            narrow => narrow,
        }
    }

    /// Do the work of `kernel` with the instructions of this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        fn run_avx2<K: Kernel>(kernel: K, token: Avx2) -> K::Output {
            kernel.run(token)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
        fn run_avx512<K: Kernel>(kernel: K, token: Avx512) -> K::Output {
            kernel.run(token)
        }
        match self {
            Self::Portable => kernel.run(Portable),
            // SAFETY: the token shows that this machine has the features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(token) => unsafe { run_avx2(kernel, token) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(token) => unsafe { run_avx512(kernel, token) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;
    impl Kernel for Name {
        type Output = &'static str;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> &'static str {
            simd.level().name()
        }
    }

    #[test]
    fn a_kernel_runs_at_the_level_that_was_named() {
        for level in Level::available() {
            assert_eq!(level.run(Name), level.name());
            assert_eq!(Level::named(level.name()), Some(level));
        }
        assert_eq!(Level::named("no such level"), None);
    }

    #[test]
    fn the_best_level_is_the_last_one() {
        assert_eq!(Level::available().last(), Some(&Level::best()));
    }
}
