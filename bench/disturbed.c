/* Loaded before the C library: a disk whose syncs take long, and a clock that somebody else sets.

   DISTURBED_SYNC: microseconds that every fsync and fdatasync takes longer.
   DISTURBED_CLOCK: a file with one 64-bit number of seconds, which are added to the time of day; it may change at any
   moment. Times that are only measured (CLOCK_MONOTONIC) stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long long *shift;
static long longer;

__attribute__((constructor)) static void prepare(void) {
    const char *sync = getenv("DISTURBED_SYNC"), *clock = getenv("DISTURBED_CLOCK");
    longer = sync ? atol(sync) : 0;
    int file = clock ? open(clock, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) shift = found;
    close(file);
}

static void wait_longer(void) {
    struct timespec left = {longer / 1000000, longer % 1000000 * 1000};
    if (longer) nanosleep(&left, NULL);
}

int fsync(int file) { wait_longer(); return (int)syscall(SYS_fsync, file); }
int fdatasync(int file) { wait_longer(); return (int)syscall(SYS_fdatasync, file); }

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && shift && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    int failed = (int)syscall(SYS_gettimeofday, now, zone);
    if (!failed && shift) now->tv_sec += *shift;
    return failed;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}
