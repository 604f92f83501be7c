internal import Configuration
internal import Containers
internal import EventLoops
internal import Queue

/// Saves documents in the queue's database, and loads them at the start: an agent without a network then
/// starts with the last document.
extension ContainerKeeper {
    /// Loads the saved copy and gives it to the machine.
    func loadSaved(_ slot: ContainerSlot) {
        Task(executorPreference: loop) {
            let saved = await self.readSaved(slot)
            await self.feed(slot, .saved(saved))
        }
    }

    /// The saved copy, verified as if it had just been fetched: a key may have been removed from the
    /// configuration meanwhile.
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
            let copy = try slot.take(file.document)
            // The version in the row is compared with published ones; a row that disagrees with its document
            // is damaged.
            guard copy.version == kept.version else {
                throw ContainerError(
                    .version, "its row says version \(kept.version), the document \(copy.version)")
            }
            return .copy(copy, etag: kept.etag, confirmed: kept.confirmed)
        } catch {
            return .refused(
                // The version still counts, so that no older document replaces the damaged copy.
                ContainerError(error.code, "the saved copy: \(error.description)"),
                version: max(kept.version, 0))
        }
    }

    /// Saves a copy. Callers that wait for the refresh get its end only after that: see `heldEnds`.
    func keep(_ slot: ContainerSlot, _ copy: ContainerCopy, _ etag: String?, _ confirmed: Timestamp) {
        // Do not take the last fetched file without a check: it may be refused while an older one still waits
        // to be saved.
        if let fetched = slot.fetched, fetched.copy == copy {
            slot.unsaved = fetched
        }
        slot.fetched = nil
        guard let unsaved = slot.unsaved, unsaved.copy == copy else { return }
        let saved = SavedContainer(
            version: copy.version, etag: etag, confirmed: confirmed, file: unsaved.file)
        let id = slot.settings.id
        slot.isSaving = true
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.store.saveContainer(id, saved)
                await self.kept(slot, copy, nil)
            } catch {
                await self.kept(slot, copy, error)
            }
        }
    }

    /// Called when a copy was saved, or could not be saved.
    private func kept(_ slot: ContainerSlot, _ copy: ContainerCopy, _ error: QueueError?) {
        if let error {
            tell(slot, .failed(.saved, .ioError, message: "cannot save the document yet: \(error.message)"))
        }
        // A newer copy was fetched meanwhile; its save reports the end.
        guard slot.unsaved?.copy == copy else { return publish() }
        slot.isSaving = false
        if error == nil {
            slot.unsaved = nil
        }
        feed(slot, .kept(error == nil))
        let ends = slot.heldEnds
        slot.heldEnds = []
        // The document is in force either way; if saving failed, the caller must know that a restart may lose
        // it.
        let failure = error.map {
            ContainerNote.failed(
                .network, .ioError, message: "it is in force, but not saved yet: \($0.message)")
        }
        for note in ends { tell(slot, failure ?? note) }
        publish()
    }

    /// Saves the time at which the server confirmed the saved copy.
    func confirm(_ slot: ContainerSlot, _ confirmed: Timestamp) {
        let id = slot.settings.id
        Task(executorPreference: loop) {
            do throws(QueueError) {
                try await self.store.confirmContainer(id, at: confirmed)
            } catch {
                await self.noteUnsaved(slot, error)
            }
        }
    }

    /// Reports that this time could not be saved. The document itself is saved, so nothing else has to
    /// happen.
    private func noteUnsaved(_ slot: ContainerSlot, _ error: QueueError) {
        tell(
            slot,
            .failed(
                .saved, .ioError, message: "cannot save that the document was confirmed: \(error.message)"))
        publish()
    }
}
