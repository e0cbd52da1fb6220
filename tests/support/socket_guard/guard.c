/* Notes where a process connects to, which names it looks up and which programs it starts.
 *
 * Loaded before the C library (LD_PRELOAD), so that it sees what every library of the process does,
 * whatever language it is written in. One line a call, appended to the file that STOA_TEST_NOTES names.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void note(const char *what, const char *where) {
    int before = errno;
    const char *path = getenv("STOA_TEST_NOTES");
    char line[512];
    int length = snprintf(line, sizeof line, "%s %s\n", what, where);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file >= 0) {
        if (write(file, line, length < (int)sizeof line ? length : (int)sizeof line) < 0)
            abort();
        close(file);
    }
    errno = before;
}

static void note_address(const char *what, const struct sockaddr *address) {
    char host[INET6_ADDRSTRLEN], where[300];
    if (address == NULL)
        return;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(where, sizeof where, "%s:%d", host, ntohs(four->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(where, sizeof where, "[%s]:%d", host, ntohs(six->sin6_port));
    } else if (address->sa_family == AF_UNIX) {
        snprintf(where, sizeof where, "unix:%.250s", ((const struct sockaddr_un *)address)->sun_path);
    } else {
        return;
    }
    note(what, where);
}

int connect(int number, const struct sockaddr *address, socklen_t length) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "connect");
    note_address("connect", address);
    return real(number, address, length);
}

ssize_t sendto(int number, const void *data, size_t size, int flags,
               const struct sockaddr *address, socklen_t length) {
    static ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    if (!real)
        real = dlsym(RTLD_NEXT, "sendto");
    note_address("send", address);
    return real(number, data, size, flags, address, length);
}

ssize_t sendmsg(int number, const struct msghdr *message, int flags) {
    static ssize_t (*real)(int, const struct msghdr *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "sendmsg");
    note_address("send", message->msg_name);
    return real(number, message, flags);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (!real)
        real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name)
        note("name", name);
    return real(name, service, hints, found);
}

int execve(const char *path, char *const arguments[], char *const environment[]) {
    static int (*real)(const char *, char *const[], char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "execve");
    note("program", path);
    return real(path, arguments, environment);
}

int execv(const char *path, char *const arguments[]) {
    static int (*real)(const char *, char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "execv");
    note("program", path);
    return real(path, arguments);
}

int execvp(const char *path, char *const arguments[]) {
    static int (*real)(const char *, char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "execvp");
    note("program", path);
    return real(path, arguments);
}

int execvpe(const char *path, char *const arguments[], char *const environment[]) {
    static int (*real)(const char *, char *const[], char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "execvpe");
    note("program", path);
    return real(path, arguments, environment);
}

int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[],
                char *const environment[]) {
    static int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
    if (!real)
        real = dlsym(RTLD_NEXT, "posix_spawn");
    note("program", path);
    return real(child, path, actions, attributes, arguments, environment);
}
