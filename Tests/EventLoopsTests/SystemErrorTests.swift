import EventLoops
import Glibc
import Testing

@Suite("System errors")
struct SystemErrorTests {
    @Test("a message about a limit of files names the limit to raise, in every form")
    func limits() {
        let remedy = "(raise LimitNOFILE= of the unit, or ulimit -n)"
        let calls: [StaticString] = ["eventfd", "epoll_create1", "signalfd", "openat2", "socket"]
        for call in calls {
            let text = SystemError(call, number: EMFILE).description
            #expect(text == "\(call): Too many open files \(remedy)")
        }
        #expect(SystemError.message(EMFILE) == "Too many open files \(remedy)")
        #expect(SystemError.clause(EMFILE) == "too many open files \(remedy)")
        #expect(SystemError.message(ENFILE).hasSuffix("(raise fs.file-max of this machine)"))
        #expect(
            SystemError("inotify_init1", number: EMFILE).description
                == "inotify_init1: no inotify instance is left (raise fs.inotify.max_user_instances,"
                + " or LimitNOFILE= of the unit)")
        #expect(
            SystemError("inotify_add_watch", number: ENOSPC).description
                == "inotify_add_watch: no inotify watch is left (raise fs.inotify.max_user_watches)")
    }

    @Test("other messages are the system's alone")
    func others() {
        #expect(SystemError.message(ENOENT) == "No such file or directory")
        #expect(SystemError.clause(ENOENT) == "no such file or directory")
        #expect(SystemError("open", number: ENOSPC).description == "open: No space left on device")
    }
}
