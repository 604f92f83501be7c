import Configuration
import Glibc
import TestKit
import Testing

@Suite("Write access to the configuration")
struct FileTrustTests {
    let directory: TemporaryDirectory
    var root: String { directory.path }
    var path: String { "\(root)/etc/spoolship.toml" }

    init() throws {
        directory = try TemporaryDirectory()
        try #require(
            mkdir("\(directory.path)/etc", 0o755) == 0 && mkdir("\(directory.path)/etc/conf.d", 0o755) == 0)
        for name in ["spoolship.toml", "conf.d/main.toml"] {
            let file = try #require(fopen("\(directory.path)/etc/\(name)", "w"))
            fclose(file)
            chmod("\(directory.path)/etc/\(name)", 0o644)
        }
    }

    func problems() -> [Problem] {
        let found: [Problem]
        do { found = try Settings.load(path: path).warnings } catch { found = error.problems }
        return found.filter { $0.code == .environment }
    }

    @Test("a configuration that only its owner may write is accepted")
    func ownersOnly() {
        #expect(problems() == [])
    }

    @Test(
        "a configuration that everybody may write is an error, for check, start and reload",
        arguments: ["etc/spoolship.toml", "etc/conf.d/main.toml", "etc/conf.d", "etc", "."])
    func writtenByEverybody(name: String) {
        let place = name == "." ? root : "\(root)/\(name)"
        chmod(place, name.hasSuffix(".toml") ? 0o666 : 0o777)
        #expect(problems().map(\.severity) == [.error])
        #expect(problems().first?.message.hasPrefix("\(place) can be written by everybody (mode 0") == true)
        #expect(problems().first?.message.hasSuffix("; run chmod go-w \(place)") == true)
    }

    @Test(
        "a configuration that a group may write is a warning, except for root's own group",
        arguments: ["etc/spoolship.toml", "etc/conf.d", "etc"])
    func writtenByGroup(name: String) {
        let place = "\(root)/\(name)"
        let group: gid_t = geteuid() == 0 ? 54_321 : getegid()
        #expect(chown(place, geteuid(), group) == 0)
        chmod(place, name.hasSuffix(".toml") ? 0o664 : 0o775)
        #expect(problems().map(\.severity) == (group == 0 ? [] : [.warning]))
        if geteuid() == 0 {
            chown(place, 0, 0)
            #expect(problems() == [])
        }
    }

    @Test("in a sticky directory such as /tmp others cannot replace a file")
    func stickyDirectory() {
        chmod("\(root)/etc", 0o1777)
        #expect(problems() == [])
    }
}
