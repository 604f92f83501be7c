/// The name that a mistyped one most likely meant.
///
/// - Returns: the name with the smallest edit distance (insertions, deletions, replacements, swapped
///   neighbours), the first among equals; nil if more than a third of the letters, but at least two, would
///   have to change.
public func nearestName(to name: String, among candidates: some Sequence<String>) -> String? {
    let written = Array(name.unicodeScalars.prefix(128))
    let allowed = max(2, written.count / 3)
    var best: (name: String, distance: Int)?
    for candidate in candidates {
        let distance = editDistance(written, Array(candidate.unicodeScalars.prefix(128)))
        // A short word is near to everything, so at least one letter must be the same.
        guard distance <= allowed, distance < max(written.count, 1) else { continue }
        if distance < best?.distance ?? .max {
            best = (candidate, distance)
        }
    }
    return best?.name
}

/// The edit distance of two names. Source: optimal string alignment distance (Damerau–Levenshtein without
/// overlapping edits).
private func editDistance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 0..<left.count {
        var current = [row + 1]
        for column in 0..<right.count {
            var distance = min(
                last[column + 1] + 1, current[column] + 1, last[column] + (left[row] == right[column] ? 0 : 1)
            )
            if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                distance = min(distance, beforeLast[column - 1] + 1)
            }
            current.append(distance)
        }
        beforeLast = last
        last = current
    }
    return last[right.count]
}
