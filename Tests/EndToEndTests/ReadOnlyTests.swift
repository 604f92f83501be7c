import EventLoops
import Glibc
import Testing

extension EndToEnd {
    /// Linux refuses to remount a file system read-only while a file on it is open for writing, as the queue's always
    /// is. It turns read-only under the agent by itself, after an error: the first test makes that happen on a real
    /// ext4. Such a one comes back by being mounted anew; network file systems, which come back under an open file,
    /// are stood in for by system calls that fail.
    @Suite("A file system that turns read-only", .enabled(if: getuid() == 0, "mounting takes root"))
    struct ReadOnlyTests {
        /// Waits until the agent says that it cannot write, and that it has read no further.
        private func waitUntilNotReady(_ bench: Workbench, _ what: String) throws {
            try wait(
                .seconds(60), "the agent to notice: \(bench.agentLog.suffix(2000))", every: .milliseconds(100)
            ) {
                let ready = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
                return ready.status == 503 && ready.body.contains(what)
            }
        }

        @Test(
            "if the kernel makes the disk read-only, reading stops, nothing is lost, and a new mount continues"
        )
        func fault05_kernelMakesItReadOnly() throws {
            let bench = try Workbench()
            let image = "\(bench.path)/disk"
            try #require(try run("truncate", ["-s", "192M", image]).code == 0)
            try #require(try run("mkfs.ext4", ["-q", "-F", image]).code == 0)
            // In a container without the right to mount there is nothing to try.
            guard try run("mount", ["-o", "loop", image, bench.state]).code == 0 else { return }
            defer {
                bench.killAgent()
                _ = try? run("umount", [bench.state])
            }
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<500), to: "app.jsonl")
            try bench.waitUntilDelivered(500)
            let refused = try run("mount", ["-o", "remount,ro", bench.state])
            #expect(refused.code != 0, "with the queue open the kernel says that it is busy")
            try #require(try run("mount", ["-o", "remount,abort", bench.state]).code == 0)
            try bench.append(keyed(500..<1000), to: "app.jsonl")
            try waitUntilNotReady(bench, "cannot be written")
            #expect(try bench.figures().total("spoolship_events_read_total") == 500)
            #expect(try bench.figures().total("spoolship_persistence_failures_total") > 0)
            try bench.expectBalance()
            #expect(access("\(bench.spool)/app.jsonl", F_OK) == 0)

            #expect(try bench.stopAgent() == 0)
            try #require(try run("umount", [bench.state]).code == 0)
            try #require(try run("mount", ["-o", "loop", image, bench.state]).code == 0)
            try bench.startAgent()
            try bench.waitUntilDelivered(1000)
            try bench.expectOnce(Set((0..<1000).map { "e\($0)" }), member: "key")
        }

        @Test(
            "if the disk is read-only for a while, the running agent stops reading, then continues by itself"
        )
        func fault05_goesOnByItself() throws {
            let bench = try Workbench()
            let library = "\(bench.path)/readonly.so"
            try write(ReadOnlyTests.source, to: "\(bench.path)/readonly.c")
            let compiled = try run(
                "clang", ["-shared", "-fPIC", "-O1", "-o", library, "\(bench.path)/readonly.c", "-ldl"])
            try #require(compiled.code == 0, "\(compiled)")
            let environment = [
                "LD_PRELOAD=\(library)", "READONLY_DIRECTORY=\(bench.state)/",
                "READONLY_SWITCH=\(bench.path)/readonly",
            ]
            try bench.startReceiver()
            try bench.startAgent(environment: environment)
            try bench.append(keyed(0..<500), to: "app.jsonl")
            try bench.waitUntilDelivered(500)
            for round in 1...2 {
                try write("on", to: "\(bench.path)/readonly")
                let first = round * 500
                try bench.append(keyed(first..<first + 400), to: "app.jsonl")
                try waitUntilNotReady(bench, "cannot be written")
                // A drop file is not taken either, or it would be gone.
                try bench.drop(keyed(first + 400..<first + 500), as: "drop-\(round).jsonl")
                #expect(try bench.figures().total("spoolship_events_read_total") == first)
                try bench.expectBalance()
                try #require(unlink("\(bench.path)/readonly") == 0)
                try bench.waitUntilDelivered(first + 500)
                #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/readyz").status == 200)
            }
            try bench.expectOnce(Set((0..<1500).map { "e\($0)" }), member: "key")
            #expect(bench.agentLog.contains("queue can be written again"))
        }

        /// Lets the calls fail with EROFS that write below a directory, while another file exists.
        private static let source = """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <errno.h>
            #include <fcntl.h>
            #include <stdarg.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <string.h>
            #include <unistd.h>

            static int below(const char *path) {
                const char *directory = getenv("READONLY_DIRECTORY");
                return path && directory && strncmp(path, directory, strlen(directory)) == 0;
            }
            static int on(void) {
                const char *file = getenv("READONLY_SWITCH");
                int saved = errno, there = file && access(file, F_OK) == 0;
                errno = saved;
                return there;
            }
            static int refused(int fd) {
                char link[64], path[4096];
                if (!on()) return 0;
                snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
                ssize_t length = readlink(link, path, sizeof path - 1);
                if (length < 0) return 0;
                path[length] = 0;
                return below(path);
            }
            #define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
            #define FAIL do { errno = EROFS; return -1; } while (0)
            ssize_t write(int fd, const void *b, size_t n) { if (refused(fd)) FAIL; return REAL(write)(fd, b, n); }
            ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { if (refused(fd)) FAIL; return REAL(pwrite)(fd, b, n, o); }
            ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { if (refused(fd)) FAIL; return REAL(pwrite64)(fd, b, n, o); }
            int ftruncate(int fd, off_t n) { if (refused(fd)) FAIL; return REAL(ftruncate)(fd, n); }
            int ftruncate64(int fd, off64_t n) { if (refused(fd)) FAIL; return REAL(ftruncate64)(fd, n); }
            int unlink(const char *p) { if (below(p) && on()) FAIL; return REAL(unlink)(p); }
            int rename(const char *p, const char *q) { if (below(p) && on()) FAIL; return REAL(rename)(p, q); }
            static int mode(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, int) : 0; }
            int open(const char *p, int flags, ...) {
                va_list list; va_start(list, flags); int m = mode(flags, list); va_end(list);
                if ((flags & O_ACCMODE) != O_RDONLY && below(p) && on()) FAIL;
                return REAL(open)(p, flags, m);
            }
            int open64(const char *p, int flags, ...) {
                va_list list; va_start(list, flags); int m = mode(flags, list); va_end(list);
                if ((flags & O_ACCMODE) != O_RDONLY && below(p) && on()) FAIL;
                return REAL(open64)(p, flags, m);
            }
            """
    }
}
