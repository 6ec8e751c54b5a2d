/** So many moments may follow each other at once: they are of different waits that end together. */
const maxAtOnce = 50

/** The moments at which a plan is made again though nothing happened. Throws where they are a busy loop. */
export class Wakes {
  #atOnce = 0

  /** The next moment. `atMs`: what the last plan asked for, which may have passed. */
  next(nowMs: number, atMs: number): number {
    this.#atOnce = atMs <= nowMs + 1 ? this.#atOnce + 1 : 0
    if (this.#atOnce > maxAtOnce)
      throw new Error(`busy loop: the plan asks ${maxAtOnce} times to be made again at once`)
    return Math.max(nowMs + 1, atMs)
  }
}
