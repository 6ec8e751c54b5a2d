import { medianOf } from './memory.ts'
import type { BenchContext } from './context.ts'

export type Figure = {
  readonly name: string
  readonly unit: string
  readonly target: number
  readonly measured: number
  /** All samples, or the parts of the figure. */
  readonly detail: string
  /** The Skyhook operator, on real kubelets in its best case. */
  readonly operator?: string
}

export type Measurement = { readonly title: string; readonly run: (bench: BenchContext) => Promise<Figure[]> }

/** The median of times in ms, with all samples beside it. */
export function medianFigure(
  name: string,
  samples: readonly number[],
  references: Pick<Figure, 'target' | 'operator'>,
): Figure {
  const detail = `median of ${samples.map((sample) => sample.toFixed(0)).join(' ')}`
  return { name, unit: 'ms', measured: medianOf(samples), detail, ...references }
}
