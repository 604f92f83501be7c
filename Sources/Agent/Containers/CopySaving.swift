internal import Containers

/// The saving of a container's newest copy: the file to save, and what must not be reported before it is
/// saved. It saves nothing itself.
struct CopySaving {
    /// The file of the last fetch, with its signatures, until the machine has judged it.
    private var fetched: (copy: ContainerCopy, file: [UInt8])?
    /// The file that must be saved in the queue's database, until it is.
    private var unsaved: (copy: ContainerCopy, file: [UInt8])?
    /// Whether the newest document is being saved.
    private var isSaving = false
    /// Ends of refreshes that are reported after saving: a person who reads "refreshed" may rely on it after
    /// a restart.
    private var heldEnds: [ContainerNote] = []

    /// A file was fetched. Its bytes are kept as served: the saved copy must carry its signatures, which are
    /// verified again at the next start.
    mutating func noteFetched(_ copy: ContainerCopy, file: [UInt8]) { fetched = (copy, file) }

    /// Begins to save a copy; returns its file, nil if the file is not known.
    mutating func begin(_ copy: ContainerCopy) -> [UInt8]? {
        // Do not take the last fetched file without a check: it may be refused while an older one still waits
        // to be saved.
        if let fetched, fetched.copy == copy {
            unsaved = fetched
        }
        fetched = nil
        guard let unsaved, unsaved.copy == copy else { return nil }
        isSaving = true
        return unsaved.file
    }

    /// Keeps the end of a refresh until the copy is saved; returns false if it can be reported now.
    mutating func hold(_ end: ContainerNote) -> Bool {
        guard isSaving else { return false }
        heldEnds.append(end)
        return true
    }

    /// Saving a copy has ended; false if a newer copy is being saved, which then reports the end.
    mutating func end(_ copy: ContainerCopy, isSaved: Bool) -> Bool {
        guard unsaved?.copy == copy else { return false }
        isSaving = false
        if isSaved {
            unsaved = nil
        }
        return true
    }

    /// The ends of refreshes that were kept until now.
    mutating func takeHeldEnds() -> [ContainerNote] {
        defer { heldEnds = [] }
        return heldEnds
    }
}
