import { medianOf } from './memory.ts'
import type { BenchContext } from './context.ts'

export type Figure = {
  readonly name: string
  readonly unit: string
  readonly target: number
  readonly measured: number
  /** All samples, or what the figure is made of. */
  readonly detail: string
  /** The original operator, on real kubelets in its best case. */
  readonly original?: string
}

export type Measurement = { readonly title: string; readonly run: (bench: BenchContext) => Promise<Figure[]> }

/** The median of times in ms, with all of them beside it. */
export function medianFigure(
  name: string,
  samples: readonly number[],
  references: Pick<Figure, 'target' | 'original'>,
): Figure {
  const detail = `median of ${samples.map((sample) => sample.toFixed(0)).join(' ')}`
  return { name, unit: 'ms', measured: medianOf(samples), detail, ...references }
}
