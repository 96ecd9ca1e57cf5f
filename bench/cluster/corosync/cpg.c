// A client of Corosync's CPG that does what members of a measured group do: one floods the group and then sends
// a thousand messages a second, another one counts and notes how long each was under way.
//
//   cpg send SIZE SECONDS      cpg take        prints: messages/s, p50 and p99 in nanoseconds

#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// Messages in a second where the delay is measured, and how many.
enum { CALM = 1000, SIZE_MAX_BYTES = 1 << 16 };

static const uint64_t FLOOD = 0, END = UINT64_MAX;

static uint64_t delays[CALM];
static size_t calm, flooded;
static uint64_t first, last;
static int ended, members;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void deliver(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t pid, void *message,
                    size_t length) {
    (void)handle, (void)group, (void)node, (void)pid, (void)length;
    uint64_t sent;
    memcpy(&sent, message, sizeof sent);
    if (sent == END) {
        ended = 1;
    } else if (sent == FLOOD) {
        last = now();
        if (flooded++ == 0) first = last;
    } else if (calm < CALM) {
        delays[calm++] = now() - sent;
    }
}

static void changed(cpg_handle_t handle, const struct cpg_name *group, const struct cpg_address *all, size_t count,
                    const struct cpg_address *left, size_t lefts, const struct cpg_address *joined, size_t joins) {
    (void)handle, (void)group, (void)all, (void)left, (void)lefts, (void)joined, (void)joins;
    members = (int)count;
}

static void check(cs_error_t error, const char *what) {
    if (error == CS_OK) return;
    fprintf(stderr, "%s: error %d\n", what, (int)error);
    exit(1);
}

// Takes what is there, and waits for so long if there is nothing.
static void turn(cpg_handle_t handle, int fd, int milliseconds) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (poll(&ready, 1, milliseconds) > 0) check(cpg_dispatch(handle, CS_DISPATCH_ALL), "dispatch");
}

static void put(cpg_handle_t handle, int fd, char *bytes, size_t size, uint64_t stamp) {
    memcpy(bytes, &stamp, sizeof stamp);
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    for (;;) {
        cs_error_t error = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &part, 1);
        if (error != CS_ERR_TRY_AGAIN) return check(error, "send");
        // The daemon takes no more for now.
        turn(handle, fd, 0);
    }
}

static void send_all(cpg_handle_t handle, int fd, size_t size, double seconds) {
    static char bytes[SIZE_MAX_BYTES];
    uint64_t end = now() + (uint64_t)(seconds * 1e9);
    size_t sent = 0;
    while (now() < end) {
        put(handle, fd, bytes, size, FLOOD), sent++;
        turn(handle, fd, 0);
    }
    while (flooded < sent) turn(handle, fd, 100);
    uint64_t due = now();
    for (int message = 0; message < CALM; message++) {
        due += 1000000000u / CALM;
        for (uint64_t t = now(); t < due; t = now()) usleep((useconds_t)((due - t) / 1000));
        put(handle, fd, bytes, size, now());
        turn(handle, fd, 0);
    }
    put(handle, fd, bytes, sizeof END, END);
    while (!ended) turn(handle, fd, 100);
}

static int by_size(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    int sends = count == 4 && strcmp(words[1], "send") == 0;
    cpg_callbacks_t told = {.cpg_deliver_fn = deliver, .cpg_confchg_fn = changed};
    cpg_handle_t handle;
    struct cpg_name group = {.length = 5, .value = "bench"};
    int fd;
    cs_error_t error;
    // The daemon beside it may not be there yet.
    for (int times = 0; (error = cpg_initialize(&handle, &told)) != CS_OK && times < 200; times++) usleep(50000);
    check(error, "initialize");
    while ((error = cpg_join(handle, &group)) == CS_ERR_TRY_AGAIN) usleep(10000);
    check(error, "join");
    check(cpg_fd_get(handle, &fd), "descriptor");
    for (int times = 0; members < 3; times++) {
        if (times == 200) return fprintf(stderr, "there are %d in the group\n", members), 1;
        turn(handle, fd, 100);
    }
    if (sends) send_all(handle, fd, (size_t)atoi(words[2]), atof(words[3]));
    while (!ended) turn(handle, fd, 1000);
    if (!sends && flooded > 1 && calm > 0) {
        qsort(delays, calm, sizeof *delays, by_size);
        double seconds = (double)(last - first) / 1e9;
        printf("%.0f %lu %lu\n", (double)flooded / seconds, (unsigned long)delays[calm / 2],
               (unsigned long)delays[calm * 99 / 100]);
    }
    return 0;
}
