internal import EventLoops
internal import Glibc
internal import Model

/// Reads the schemas of a directory: `NAME.json` for the events of that name, `APP/NAME.json` for those of
/// one app.
///
/// A file's name cannot hold a slash, so `%2F` stands for it; other bytes may be percent-encoded too.
package enum SchemaFiles {
    /// Most schemas of a directory.
    static let most = 1000
    /// Longest schema, in bytes. A file that is longer by mistake would otherwise be read into memory as a
    /// whole.
    static let longest = 256 << 10
    /// End of the names that count; other files are ignored.
    private static let ending = ".json"

    /// Reads and compiles all schemas.
    ///
    /// - Throws: `SchemaError` for the first file that cannot be used. None of the schemas is used then: a
    ///   partial set would let unchecked events through.
    package static func read(_ directory: String) throws(SchemaError) -> SchemaSet {
        var schemas: [EventSchema] = []
        for entry in try names(in: directory) {
            let path = "\(directory)/\(entry)"
            if entry.hasSuffix(ending) {
                schemas.append(try schema(path, nil, entry))
            } else if isDirectory(path) {
                for name in try names(in: path) where name.hasSuffix(ending) {
                    schemas.append(try schema("\(path)/\(name)", entry, name))
                }
            }
            guard schemas.count <= most else {
                throw SchemaError("\(directory) has more than \(most) schemas")
            }
        }
        var known: Set<[String]> = []
        for schema in schemas where !known.insert([schema.app ?? "", schema.name]).inserted {
            throw SchemaError("\(directory) has two files for the events \(schema.name)")
        }
        return SchemaSet(schemas)
    }

    /// The visible names in a directory, sorted. Editors and package managers leave hidden files.
    private static func names(in directory: String) throws(SchemaError) -> [String] {
        do throws(SystemError) {
            let names = try WholeFile.names(in: directory, atMost: 4 * most)
            return names.filter { !$0.hasPrefix(".") }.sorted()
        } catch {
            throw SchemaError("\(directory) cannot be read: \(error)")
        }
    }

    /// Reads and compiles one file; errors name its path.
    private static func schema(_ path: String, _ app: String?, _ file: String) throws(SchemaError)
        -> EventSchema
    {
        guard let name = eventName(file.dropLast(ending.count)) else {
            throw SchemaError(
                "\(path): the file's name is no event's name: % needs two hexadecimal digits behind it")
        }
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try WholeFile.bytes(of: path, atMost: longest)
        } catch {
            throw SchemaError("\(path) cannot be read: \(error)")
        }
        guard let bytes else { throw SchemaError("\(path) is longer than \(longest >> 10) KiB") }
        do throws(SchemaError) {
            return try EventSchema(app: app, name: name, bytes)
        } catch {
            throw SchemaError("\(path): \(error.message)")
        }
    }

    private static func isDirectory(_ path: String) -> Bool { FileStatus(path)?.isDirectory == true }

    /// The event name that a file's name stands for; nil if its percent encoding is invalid or it is not
    /// UTF-8.
    private static func eventName(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return bytes.isEmpty ? nil : String(validating: bytes, as: UTF8.self)
    }
}
