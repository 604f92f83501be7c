import Events
import Glibc
@testable import Host
import TestKit
import Testing
import TimeZones

@Suite("Facts about the machine")
struct HostTests {
    private func write(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "w"))
        fputs(text, file)
        fclose(file)
    }

    @Test("ac22: facts that the system gives are sent, and missing ones are left out")
    func ac22_device() throws {
        let root = try TemporaryDirectory()
        for directory in ["etc", "sys", "sys/class", "sys/class/dmi", "sys/class/dmi/id"] {
            mkdir("\(root.path)/\(directory)", 0o755)
        }
        var reader = DeviceReader(root: root.path, environment: ["LANG": "C.UTF-8"])
        #expect(
            Set(reader.read(version: "1.0", installID: nil).keys) == ["sdk_name", "sdk_version", "kernel"])
        try write(
            "# x\nNAME=\"Debian GNU/Linux\"\nVERSION_ID='12'\nBUILD_ID=a\\$b\nnonsense\nEMPTY=\n",
            to: "\(root.path)/etc/os-release")
        try write("PowerEdge R650 \n", to: "\(root.path)/sys/class/dmi/id/product_name")
        try write("To Be Filled By O.E.M.\n", to: "\(root.path)/sys/class/dmi/id/sys_vendor")
        reader = DeviceReader(root: root.path, environment: ["LANG": "en_US.UTF-8", "LC_ALL": "it_IT@euro"])
        var found = reader.read(version: "1.0", installID: "x", hostName: "web3")
        #expect(found.removeValue(forKey: "kernel")?.isEmpty == false)
        #expect(
            found == [
                "sdk_name": "spoolship", "sdk_version": "1.0", "host_name": "web3",
                "os_name": "Debian GNU/Linux",
                "os_version": "12",
                "os_build": "a$b", "model": "PowerEdge R650", "locale": "it_IT", "install_id": "x",
            ])
        let all = Set(DeviceReader.members + ["time_zone_offset"])
        let text = DeviceReader.text(
            found, wanted: all, overrides: ["model": "rack 12", "locale": ""], zone: .utc)
        #expect(
            text?.members.map(\.name) == [
                "sdk_name", "sdk_version", "host_name", "os_name", "os_version", "os_build", "model",
                "install_id",
            ])
        #expect(text?.members.contains(.init("model", "rack 12")) == true && text?.zone == .utc)
        let renamed = DeviceReader.text(found, wanted: all, overrides: ["host_name": "shop"], zone: .utc)
        #expect(renamed?.members.contains(.init("host_name", "shop")) == true)
        #expect(DeviceReader.text(found, wanted: [], overrides: ["model": "x"], zone: .utc) == nil)
    }

    @Test("ac22: the install id is made once and private; a broken one is replaced, with a message")
    func ac22_installID() throws {
        let directory = try TemporaryDirectory()
        var random = SplitMix64(seed: Seeds.one(22))
        let first = try InstallID.load(in: directory.path, using: &random)
        #expect(!first.wasReplaced && first.text.utf8.count == 36 && Array(first.text)[14] == "4")
        #expect(try InstallID.load(in: directory.path, using: &random) == first)
        var status = stat()
        #expect(stat("\(directory.path)/install-id", &status) == 0 && status.st_mode & 0o777 == 0o600)
        for broken in ["", "hello", first.text + "x\n", String(first.text.dropLast())] {
            try write(broken, to: "\(directory.path)/install-id")
            let made = try InstallID.load(in: directory.path, using: &random)
            #expect(made.wasReplaced && made.text != first.text)
        }
        try write(first.text.uppercased() + "\n", to: "\(directory.path)/install-id")
        #expect(try InstallID.load(in: directory.path, using: &random) == first)
        #expect(try InstallID.reset(in: directory.path, using: &random).text != first.text)
        #expect(throws: HostError.self) { try InstallID.load(in: "\(directory.path)/none", using: &random) }
    }

    @Test("ac22: a clone of another machine's image gets its own install id once, and logs the old one")
    func ac22_clonedMachine() throws {
        let directory = try TemporaryDirectory()
        var random = SplitMix64(seed: Seeds.one(23))
        let (one, two) = (String(repeating: "a", count: 32), String(repeating: "b", count: 32))
        // An agent before this knew no machine: what it has stays.
        let first = try InstallID.load(in: directory.path, using: &random)
        #expect(try InstallID.load(in: directory.path, machine: one, using: &random) == first)
        #expect(try InstallID.load(in: directory.path, machine: one, using: &random) == first)
        // A machine that does not say who it is changes nothing.
        #expect(try InstallID.load(in: directory.path, using: &random) == first)
        let clone = try InstallID.load(in: directory.path, machine: two, using: &random)
        #expect(clone.text != first.text && clone.clonedFrom == first.text && !clone.wasReplaced)
        let again = try InstallID.load(in: directory.path, machine: two, using: &random)
        #expect(again.text == clone.text && again.clonedFrom == nil)

        let root = try TemporaryDirectory()
        mkdir("\(root.path)/etc", 0o755)
        #expect(MachineID.read(root: root.path) == nil)
        try write("uninitialized\n", to: "\(root.path)/etc/machine-id")
        #expect(MachineID.read(root: root.path) == nil)
        try write(one.uppercased() + "\n", to: "\(root.path)/etc/machine-id")
        #expect(MachineID.read(root: root.path) == one)
    }

    @Test("ac23: countries are read from a MaxMind database, for IPv4 and IPv6")
    func ac23_database() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/test.mmdb"
        let file = try #require(fopen(path, "w"))
        _ = SmallCountryDatabase.bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
        fclose(file)
        let database = try CountryDatabase(path: path)
        #expect(database.country(of: "1.2.3.4")?.description == "IT")
        #expect(database.country(of: "127.255.255.255")?.description == "IT")
        #expect(database.country(of: "128.0.0.1") == nil)
        for text in ["", "localhost", "1.2.3", "1.2.3.4 ", "::1::"] {
            #expect(database.country(of: text) == nil)
        }
        for bad in ["\(directory.path)/none.mmdb", "/etc/os-release"] {
            #expect(throws: HostError.self) { try CountryDatabase(path: bad) }
        }
    }
}
