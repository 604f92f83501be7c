internal import Configuration
internal import Containers
internal import EventLoops
internal import Model
internal import Queue

/// Copies in the queue's database.
extension ContainerKeeper {
    func loadSaved(_ slot: ContainerSlot) {
        Task(executorPreference: loop) {
            let saved = await self.readSaved(slot)
            await self.feed(slot, .saved(saved))
        }
    }

    private func readSaved(_ slot: ContainerSlot) async -> ContainerMachine.Saved {
        let kept: SavedContainer?
        do throws(QueueError) {
            kept = try await store.savedContainer(slot.settings.id)
        } catch {
            return .failed(error.message)
        }
        guard let kept else { return .missing }
        do throws(ContainerError) {
            let file = try SignedDocument(kept.file)
            try file.verify(by: slot.keys)
            return .copy(try slot.take(file.document), etag: kept.etag, confirmed: kept.confirmed)
        } catch {
            return .refused(ContainerError(error.code, "the saved copy: \(error.description)"), version: kept.version)
        }
    }

    func keep(_ slot: ContainerSlot, _ copy: ContainerCopy, _ etag: String?, _ confirmed: Timestamp) {
        guard let fetched = slot.fetched, fetched.copy == copy else { return }
        slot.fetched = nil
        let saved = SavedContainer(version: copy.version, etag: etag, confirmed: confirmed, file: fetched.file)
        let id = slot.settings.id
        write(slot) { [store] () async throws(QueueError) in try await store.saveContainer(id, saved) }
    }

    func confirm(_ slot: ContainerSlot, _ confirmed: Timestamp) {
        let id = slot.settings.id
        write(slot) { [store] () async throws(QueueError) in try await store.confirmContainer(id, at: confirmed) }
    }

    /// What cannot be saved serves all the same, until a restart.
    private func write(_ slot: ContainerSlot, _ work: @escaping @Sendable () async throws(QueueError) -> Void) {
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await work()
            } catch {
                await self.noteUnsaved(slot, error)
            }
        }
    }

    private func noteUnsaved(_ slot: ContainerSlot, _ error: QueueError) {
        tell(slot, .failed(.saved, .ioError, message: "cannot save the document: \(error.message)"))
        publish()
    }
}
