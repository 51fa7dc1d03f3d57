//! Which CPUs a thread may run on, where the system can be asked.

#[cfg(all(target_os = "linux", not(loom)))]
mod linux {
    use std::mem::{MaybeUninit, size_of};

    /// The CPUs that the calling thread may run on, in ascending order; none if that is not known.
    pub(crate) fn allowed() -> Vec<usize> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the kernel writes at most the given number of bytes, which is the set's own size.
        let status =
            unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
        // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
        let set = unsafe { set.assume_init() };
        if status != 0 {
            return Vec::new();
        }
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the index is below CPU_SETSIZE, the number of bits in the set.
        all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    /// Keeps the calling thread on one CPU. Failing to is not an error: it runs where it may.
    pub(crate) fn pin(cpu: usize) {
        if cpu >= libc::CPU_SETSIZE as usize {
            return;
        }
        // SAFETY: all zeros is a valid cpu_set_t, an array of integers.
        let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
        // SAFETY: the index is below CPU_SETSIZE, as checked above.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: the kernel reads the given number of bytes, which is the set's own size.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    }
}

#[cfg(all(target_os = "linux", not(loom)))]
pub(crate) use linux::{allowed, pin};

/// Not known on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn allowed() -> Vec<usize> {
    Vec::new()
}

/// Not possible on this system.
#[cfg(any(loom, not(target_os = "linux")))]
pub(crate) fn pin(_cpu: usize) {}
