/* Record every change to the files below $DISK_LOG_FOLDER, in order, in the file $DISK_LOG.
 *
 * Preloaded before the C library (LD_PRELOAD). A record is a line "OPERATION INODE OFFSET LENGTH NAME", followed by LENGTH bytes of
 * data. Test power cuts replay the records and leave out changes that no fsync made durable.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int in_folder(const char *path) {
  const char *folder = getenv("DISK_LOG_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static void record(const char *operation, ino_t inode, off_t offset, size_t length, const char *name, const void *data) {
  static int log = -1;
  static ssize_t (*write_vector)(int, const struct iovec *, int);
  char line[PATH_MAX + 100];
  pthread_mutex_lock(&lock);
  if (log < 0) {
    log = open(getenv("DISK_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    write_vector = dlsym(RTLD_NEXT, "writev");
  }
  int head = snprintf(line, sizeof line, "%s %lu %ld %zu %s\n", operation, (unsigned long)inode, (long)offset, length, name);
  struct iovec parts[2] = {{line, head}, {(void *)data, length}};
  if (log < 0 || write_vector(log, parts, length ? 2 : 1) != (ssize_t)(head + length)) abort(); /* a log with holes proves nothing */
  pthread_mutex_unlock(&lock);
}

static void record_file(const char *operation, int file, off_t offset, size_t length, const void *data) {
  char link[40], path[PATH_MAX];
  struct stat status;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return;
  path[size] = 0;
  if (in_folder(path) && fstat(file, &status) == 0) record(operation, status.st_ino, offset, length, path, data);
}

static void record_name(const char *operation, const char *path, const char *name) {
  struct stat status;
  if (in_folder(path) && stat(path, &status) == 0) record(operation, status.st_ino, 0, 0, name, "");
}

#define NEXT(type, name, ...) type (*next)(__VA_ARGS__) = dlsym(RTLD_NEXT, #name)

#define POSITIONED_WRITE(function, offset_type)                                        \
  ssize_t function(int file, const void *data, size_t length, offset_type offset) {    \
    NEXT(ssize_t, function, int, const void *, size_t, offset_type);                   \
    ssize_t written = next(file, data, length, offset);                                \
    if (written > 0) record_file("write", file, offset, written, data);                \
    return written;                                                                    \
  }
POSITIONED_WRITE(pwrite, off_t)
POSITIONED_WRITE(pwrite64, off64_t)

ssize_t write(int file, const void *data, size_t length) {
  NEXT(ssize_t, write, int, const void *, size_t);
  ssize_t written = next(file, data, length);
  off_t end = written > 0 ? lseek(file, 0, SEEK_CUR) : -1;
  if (end >= 0) record_file("write", file, end - written, written, data);
  return written;
}

#define TRUNCATE(function, offset_type)                      \
  int function(int file, offset_type size) {                 \
    NEXT(int, function, int, offset_type);                   \
    int result = next(file, size);                           \
    if (result == 0) record_file("size", file, size, 0, ""); \
    return result;                                           \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNCHRONIZE(function)                             \
  int function(int file) {                                \
    NEXT(int, function, int);                             \
    int result = next(file);                              \
    if (result == 0) record_file("sync", file, 0, 0, ""); \
    return result;                                        \
  }
SYNCHRONIZE(fsync)
SYNCHRONIZE(fdatasync)

int unlink(const char *path) {
  NEXT(int, unlink, const char *);
  record_name("unlink", path, path);
  return next(path);
}

int link(const char *old, const char *new) {
  NEXT(int, link, const char *, const char *);
  int result = next(old, new);
  if (result == 0) record_name("name", new, new);
  return result;
}

int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags) {
  NEXT(int, linkat, int, const char *, int, const char *, int);
  int result = next(old_folder, old, new_folder, new, flags);
  if (result == 0) record_name("name", new, new);
  return result;
}

int rename(const char *old, const char *new) {
  NEXT(int, rename, const char *, const char *);
  int result = next(old, new);
  if (result == 0) {
    record_name("name", new, new);
    record("unlink", 0, 0, 0, old, "");
  }
  return result;
}

#define OPEN(function)                                                                 \
  int function(const char *path, int flags, ...) {                                     \
    NEXT(int, function, const char *, int, ...);                                       \
    __builtin_va_list arguments;                                                       \
    __builtin_va_start(arguments, flags);                                              \
    int mode = flags & (O_CREAT | O_TMPFILE) ? __builtin_va_arg(arguments, int) : 0;   \
    __builtin_va_end(arguments);                                                       \
    int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;                         \
    int file = next(path, flags, mode);                                                \
    if (file >= 0 && (is_new || flags & O_TRUNC)) {                                    \
      char place[PATH_MAX];                                                            \
      if (realpath(path, place)) {                                                     \
        if (is_new) record_name("create", place, place);                               \
        else record_file("size", file, 0, 0, "");                                      \
      }                                                                                \
    }                                                                                  \
    return file;                                                                       \
  }
OPEN(open)
OPEN(open64)
