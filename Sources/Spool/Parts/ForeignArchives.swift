internal import EventLoops

/// Archives that cannot be read (`x.log.1.xz`), as the first listing after a start finds them.
///
/// A file that was read to its end, and written to, rotated and compressed while no agent ran, leaves nothing
/// else of its last lines.
struct ForeignArchives {
    /// Most archives that are noted. Only those of streams that were read are.
    private static let most = 1024

    /// An archive.
    struct Archive: Equatable {
        let directory: FileName
        let name: FileName

        /// The name that its file had before rotation.
        fileprivate let stem: FileName
    }

    private var archives: [Archive] = []
    /// The latest known modification time of each stream's files that are gone, in seconds since 1970.
    private var gone: [Stream: Int64] = [:]

    /// Notes an archive that was found.
    ///
    /// - Parameter before: the name of its file before it was compressed.
    mutating func found(_ name: FileName, of before: FileName, in directory: FileName) {
        guard archives.count < ForeignArchives.most else { return }
        archives.append(Archive(directory: directory, name: name, stem: before.stem))
    }

    /// Notes a file that was read to its end and is gone.
    mutating func missed(_ streams: [Stream], modified: Int64) {
        for stream in streams { gone[stream] = max(gone[stream] ?? modified, modified) }
    }

    /// Takes the archives that may hold lines that were not read: those of a stream whose files are gone, and
    /// were written to after all of these were read.
    ///
    /// - Parameters:
    ///   - holder: the holder of an archive's file, by its owner.
    ///   - status: the status of an archive; nil if it is gone.
    mutating func takeUnread(
        holder: (Archive, UInt32) -> Holder?, status: (Archive) -> FileStatus?
    ) -> [(archive: Archive, size: Int64)] {
        defer { self = ForeignArchives() }
        guard !gone.isEmpty else { return [] }
        return archives.compactMap { archive in
            guard let status = status(archive), let holder = holder(archive, status.owner),
                let read = gone[Stream(holder: holder, stem: archive.stem)], status.isRegular,
                status.modified.milliseconds / 1000 > read
            else { return nil }
            return (archive, status.size)
        }
    }
}
