/** The number by which samples of campaigns differ: from 0 to 2^28 - 1, the same for the same commit. */
export const numberOfCommit = (hash: string): number => Number.parseInt(hash.slice(0, 7), 16)
