/* Makes calls on files fail, for tests: preloaded into the program (LD_PRELOAD), told by FAULTS what to do.
 *
 * FAULTS="CALL:SUFFIX:NTH:COUNT:ERRNO;..." makes the calls NTH to NTH+COUNT-1 (from 1) of CALL on a path that ends in SUFFIX
 * fail with ERRNO. CALL is open, read (pread as well), write (pwrite), stat (of an open file), list (readdir) or map. An entry of its own counts
 * its own calls. The C library's functions are what is replaced, so programs that make system calls themselves are not seen.
 * At the end the number of calls that failed is written to the file FAULTS_TOLD. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST 16

static struct fault { char call[8], suffix[256]; long nth, count; int error; long seen; } faults[MOST];
static int known = -1;
static long failed = 0;

__attribute__((constructor)) static void start(void) {
    const char *text = getenv("FAULTS");
    int n = 0;
    for (char *copy = strdup(text ? text : ""), *next, *one = strtok_r(copy, ";", &next); one && n < MOST;
         one = strtok_r(NULL, ";", &next)) {
        struct fault *f = &faults[n];
        if (sscanf(one, "%7[^:]:%255[^:]:%ld:%ld:%d", f->call, f->suffix, &f->nth, &f->count, &f->error) == 5) n++;
    }
    known = n;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULTS_TOLD");
    long count = failed;
    known = 0;
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", count);
        fclose(file);
    }
}

/* Whether this call is to fail; errno says how. */
static int fails(const char *call, const char *path) {
    int result = 0;
    for (int i = 0; i < known; i++) {
        struct fault *f = &faults[i];
        size_t have = strlen(path), want = strlen(f->suffix);
        if (strcmp(f->call, call) || have < want || strcmp(path + have - want, f->suffix)) continue;
        long seen = __atomic_add_fetch(&f->seen, 1, __ATOMIC_SEQ_CST);
        if (seen >= f->nth && seen < f->nth + f->count) {
            __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
            errno = f->error;
            result = 1;
        }
    }
    return result;
}

static int fails_fd(const char *call, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0) return 0;
    path[len] = 0;
    return fails(call, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                                                                                \
    int name(const char *path, int flags, ...) {                                                                                 \
        va_list rest;                                                                                                            \
        va_start(rest, flags);                                                                                                   \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                                  \
        va_end(rest);                                                                                                            \
        return fails("open", path) ? -1 : NEXT(name)(path, flags, mode);                                                         \
    }
OPEN(open)
OPEN(open64)

ssize_t read(int fd, void *to, size_t len) { return fails_fd("read", fd) ? -1 : NEXT(read)(fd, to, len); }
ssize_t pread(int fd, void *to, size_t len, off_t at) { return fails_fd("read", fd) ? -1 : NEXT(pread)(fd, to, len, at); }
ssize_t pread64(int fd, void *to, size_t len, off64_t at) { return fails_fd("read", fd) ? -1 : NEXT(pread64)(fd, to, len, at); }

ssize_t pwrite(int fd, const void *from, size_t len, off_t at) {
    return fails_fd("write", fd) ? -1 : NEXT(pwrite)(fd, from, len, at);
}
ssize_t pwrite64(int fd, const void *from, size_t len, off64_t at) {
    return fails_fd("write", fd) ? -1 : NEXT(pwrite64)(fd, from, len, at);
}

int fstat(int fd, struct stat *to) { return fails_fd("stat", fd) ? -1 : NEXT(fstat)(fd, to); }
int fstat64(int fd, struct stat64 *to) { return fails_fd("stat", fd) ? -1 : NEXT(fstat64)(fd, to); }
int statx(int fd, const char *path, int flags, unsigned mask, struct statx *to) {
    int open_file = fd >= 0 && (flags & AT_EMPTY_PATH) && !*path;
    return open_file && fails_fd("stat", fd) ? -1 : NEXT(statx)(fd, path, flags, mask, to);
}

struct dirent64 *readdir64(DIR *folder) { return fails_fd("list", dirfd(folder)) ? NULL : NEXT(readdir64)(folder); }
DIR *opendir(const char *path) { return fails("open", path) ? NULL : NEXT(opendir)(path); }

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t from) {
    return fd >= 0 && fails_fd("map", fd) ? MAP_FAILED : NEXT(mmap)(at, len, prot, flags, fd, from);
}
void *mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t from) {
    return fd >= 0 && fails_fd("map", fd) ? MAP_FAILED : NEXT(mmap64)(at, len, prot, flags, fd, from);
}
