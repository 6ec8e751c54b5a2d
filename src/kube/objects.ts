import type { ObjectMeta } from '../schemas/kubernetes.ts'

/** Any object of the API, as far as this agent reads it. Objects stay plain JSON, so fields we do not know survive. */
export type KubeObject = {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

export type ObjectList<T extends KubeObject> = {
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    /** On a page of a collection: how many items follow. */
    readonly remainingItemCount?: number
  }
  readonly items?: readonly T[]
}

/** Accept headers that make the server send metadata only: a status of any size then costs nothing on the wire. */
export const metadataOnlyAccept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
export const metadataOnlyListAccept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
