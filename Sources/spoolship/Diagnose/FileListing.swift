internal import CLinux
internal import Digests
internal import EventLoops
internal import Glibc

/// A listing of a directory and its subdirectories: mode, owner, size, time and name of each file, never its
/// contents.
///
/// Root lists what users may change at any moment. Each directory is listed by its descriptor, opened without
/// following links, so that a directory that becomes a link in between leads nowhere else.
struct FileListing {
    /// The most lines: a spool can have a million files, and a report is sent by mail.
    private static let most = 2_000
    /// The deepest level of subdirectories that is listed.
    private static let deepest = 8

    /// The directory that is listed.
    let root: String
    /// Whether names are replaced by hashes: names of files and apps can say more than their owner wants to
    /// send.
    let isHashed: Bool
    /// Random bytes before each name that is hashed, new for each report. Within the report the same name has
    /// the same hash, but hashing likely names finds none of them.
    private let salt = (0..<32).map { _ in UInt8.random(in: .min ... .max) }

    /// The listing as text, indented by level.
    var text: String {
        var lines = [root]
        do throws(SystemError) {
            let directory = try Descriptor(
                checking: open(root, CLINUX_O_PATH | O_DIRECTORY | O_CLOEXEC), "open")
            add(directory.raw, depth: 0, to: &lines)
        } catch {
            lines.append(FileListing.unlistable(error))
        }
        if lines.count > FileListing.most {
            lines.append("… and more")
        }
        return lines.joined(separator: "\n")
    }

    /// Adds the files of a directory, sorted by name, and those below.
    private func add(_ directory: Int32, depth: Int, to lines: inout [String]) {
        let indent = String(repeating: "  ", count: depth)
        let names: [String]
        do throws(SystemError) {
            names = try WholeFile.names(in: "/proc/self/fd/\(directory)", atMost: FileListing.most + 1)
        } catch {
            lines.append(indent + FileListing.unlistable(error))
            return
        }
        for name in names.sorted() {
            guard lines.count <= FileListing.most else { return }
            guard let status = FileStatus(link: name, in: directory) else { continue }
            let mode = String(status.mode, radix: 8)
            lines.append(
                "\(indent)\(mode) \(status.ownerName) \(status.size) \(status.modified) \(shown(name))")
            guard status.isDirectory, depth < FileListing.deepest else { continue }
            let flags = CLINUX_O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
            // One that was removed or replaced meanwhile has been listed by its name.
            guard let below = try? Descriptor(checking: openat(directory, name, flags), "openat") else {
                continue
            }
            add(below.raw, depth: depth + 1, to: &lines)
        }
    }

    private static func unlistable(_ error: SystemError) -> String {
        "cannot be listed: \(SystemError.clause(error.number))"
    }

    /// The name; with hashes the first 12 digits of its hash, and its suffix if that only tells the kind of
    /// file.
    private func shown(_ name: String) -> String {
        guard isHashed, name != ".spoolship" else { return name }
        let hash = SHA256.hexadecimal(salt + Array(name.utf8)).prefix(12)
        let kinds = [".json", ".jsonl", ".ndjson", ".log", ".gz", ".zst", ".tmp", ".part"]
        return hash + (kinds.first { name.hasSuffix($0) } ?? "")
    }
}
