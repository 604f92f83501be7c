internal import Configuration
internal import Containers
internal import EventLoops

/// What a person asks of the containers.
extension ContainerKeeper {
    /// Why a request about a container makes no sense.
    enum Mistake: Error {
        /// There is none of that id.
        case unknown
        /// It has no address.
        case noAddress
        /// The draft is no good.
        case document(ContainerError)
        /// Nobody said which of several it is.
        case several
        /// A link leads nowhere.
        case link(String)
        /// The draft is another container's.
        case other(String)
    }

    private func slot(_ id: String) throws(Mistake) -> ContainerSlot {
        guard let slot = slots.first(where: { $0.settings.id == id }) else { throw .unknown }
        return slot
    }

    /// Fetches a container now; returns when the fetch has ended, within its timeouts.
    func refresh(_ id: String) async throws(Mistake) -> RefreshEnd {
        let slot = try slot(id)
        guard slot.settings.url != nil else { throw .noAddress }
        return await withCheckedContinuation { continuation in
            slot.waiters.append(continuation)
            feed(slot, .refresh)
        }
    }

    /// Lets a draft of any version rule for a time (tm16). It is not kept: a restart ends it.
    ///
    /// - Returns: its version.
    func preview(_ id: String?, _ content: [UInt8], for time: Duration) throws(Mistake) -> (id: String, version: Int) {
        let document: ContainerDocument
        do throws(ContainerError) {
            // A signed file is a draft as well; here a person vouches for it.
            document = try ContainerDocument(reading: SignedDocument.document(in: content))
        } catch {
            throw .document(error)
        }
        guard let slot = slots.first(where: { $0.settings.id == document.id }), id == nil || id == document.id else {
            throw .other(document.id)
        }
        do throws(ContainerError) {
            let copy = try slot.remember(document, content)
            feed(slot, .preview(copy, time))
        } catch {
            throw .document(error)
        }
        return (document.id, document.version)
    }

    /// Fetches a draft that is signed for previews and lets it rule for a time (tm16). Nobody vouches for what a link leads to
    /// but its signature, by a key of the container; a link that is passed on for too long ends by the draft's `expires`.
    ///
    /// - Returns: its version.
    func preview(
        _ id: String?, link: String, for span: Duration
    ) async throws(Mistake) -> (id: String, version: Int) {
        guard id != nil || slots.count == 1, let name = id ?? slots.first?.settings.id else { throw .several }
        let slot = try slot(name)
        let file = try await fetched(link, for: slot)
        let document: ContainerDocument
        let content: [UInt8]
        do throws(ContainerError) {
            let signed = try SignedDocument(file, for: .preview)
            try signed.verify(by: slot.keys)
            content = signed.document
            document = try ContainerDocument(reading: content)
            // By any clock: to refuse a draft does no harm, whatever the time.
            if let expires = document.expires, time.wallTime >= expires {
                throw ContainerError(.expired, "the draft has expired; sign one with a later expiry date")
            }
        } catch {
            throw .document(error)
        }
        guard document.id == name else { throw .other(document.id) }
        return try preview(name, content, for: span)
    }

    /// Ends the preview of a container, or of all.
    ///
    /// - Returns: the ids of those that were previewed.
    func endPreview(_ id: String?) throws(Mistake) -> [String] {
        let chosen = try id.map { id throws(Mistake) in [try slot(id)] } ?? slots
        let previewed = chosen.filter { $0.machine.previewEnd != nil }
        for slot in previewed { feed(slot, .endPreview) }
        return previewed.map(\.settings.id)
    }

    /// The exact bytes of the document in force; nil where there is none, or a file of values only.
    func document(_ id: String) throws(Mistake) -> [UInt8]? {
        let slot = try slot(id)
        guard let container = slot.current, container.document.version > 0 else { return nil }
        let content = slot.machine.inForce?.copy.content
        // A default file may be a signed one.
        return content.map { SignedDocument.document(in: $0) }
    }
}
