internal import Model

extension Template.Place {
    /// A value of an event as it may be in this place: it cannot begin another part of a name, lead elsewhere or be refused.
    ///
    /// Letters, digits, `_` and `-` stay, ASCII alone where the place knows no others; everything else becomes `_`, and what is
    /// longer than 64 bytes is cut. An index is in small letters and does not begin with a sign; in a key a dot may be, but not
    /// first; a label takes all that can be shown.
    /// Source: Elasticsearch reference, "Create index API"; Apache Kafka, `Topic.validate`; NATS documentation, "Subject-Based
    /// Messaging"; Amazon S3 User Guide, "Naming Amazon S3 objects".
    /// - Returns: nil where nothing is left.
    func safe(_ value: String) -> String? {
        var text = ""
        var length = 0
        for scalar in value.unicodeScalars {
            let safe = self.safe(scalar, isFirst: text.isEmpty)
            guard let safe else { continue }
            length += UTF8.width(safe)
            if length > Template.longestValue { break }
            text.unicodeScalars.append(safe)
        }
        return text.isEmpty ? nil : text
    }

    /// A character as it may be there; nil: it is left out.
    private func safe(_ scalar: Unicode.Scalar, isFirst: Bool) -> Unicode.Scalar? {
        switch scalar {
        case "a"..."z", "0"..."9": return scalar
        case "A"..."Z": return self == .index ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar
        case "_", "-": return self == .index && isFirst ? nil : scalar
        default: break
        }
        let stays: Bool =
            switch self {
            case .index, .topic: false
            case .subject: scalar.isLetterOrDigit
            case .key: scalar.isLetterOrDigit || scalar == "." && !isFirst
            case .label: scalar.isShown
            }
        guard !stays else { return scalar }
        return self == .index && isFirst ? nil : "_"
    }
}

extension Unicode.Scalar {
    fileprivate var isLetterOrDigit: Bool {
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .nonspacingMark,
            .spacingMark, .decimalNumber:
            true
        default: false
        }
    }

    fileprivate var isShown: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
