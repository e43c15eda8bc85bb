"""Every number by which something counts as zero, as equal, as at rest or as reached.

What a user may want to change is an argument of a function, whose default stands here. How many of
something are taken, what fits into memory, what a computation costs and how a picture is laid out
are not thresholds: such numbers stand beside what uses them.
"""

from __future__ import annotations

# Rounding, in float64 --------------------------------------------------------------------------

ROUNDING = 1e-9
"""Numbers that are computed directly and differ by less than this part are equal."""

DIGITS = 9
"""The same where numbers are compared after rounding: the decimals in which they must agree."""

NOISE = 1e-12
"""What is below this part of the largest of its kind, or of its bound, is zero.

Such as singular values, weights, and growth rates compared with √(⟨‖x‖²⟩⟨‖y‖²⟩), which bounds them.
Growth rates may be far below that bound where features differ in scale, so that only rounding
counts as zero.
"""

DEPENDENT = 1e-13
"""The same where what is dropped never returns, although a weak direction may still grow.

Such as singular values of the inputs of a class, each feature in its own unit.
"""

EXACT = 1e-8
"""A reduction that dropped no coupling above this is exact: what is smaller is rounding.

The same holds for coefficients of merged equations compared with the largest of their equation, in
natural units, and for unit vectors that hardly leave a span.
"""

FINEST = 1e-13
"""A smaller relative tolerance of a step asks for more digits than float64 has."""

TINY = 1e-300
"""Keeps lengths of zero from being divided by."""

EQUAL = 1e-6
"""What is solved for, iterated, trained or in float32 is equal if it differs by less than this.

Such as learning times, losses compared with the initial one, stationary points, growth rates, and
singular values compared with the largest. It is above the rounding of float32, and below the
distance of different modes.
"""

PRINTED = 1e-5
"""Times are printed to five digits: two times that differ by less than this part are equal."""

REMAINS = 1e-3
"""A prediction that is further off, as a part of the initial loss, is said to leave an error."""

ROUNDINGS = 16
"""Inner products in low precision may differ by this many roundings, if that exceeds `ROUNDING`."""

# Runs of the processor --------------------------------------------------------------------------

THIN = 500
"""Matrices up to this width are quicker on one thread: starting several takes longer."""

# The range of numbers ---------------------------------------------------------------------------

LARGEST = 1e75
"""Up to this size of x and y, products of two second moments stay within the range of float64."""

LATEST = 1e100
"""The latest time that can be asked for: later ones overflow when multiplied by rates."""

LARGEST_LOG = 120.0
"""Logarithms of row sizes up to this: e^{±120} ≈ 1e±52 can still be squared without overflow."""

SMALLEST_SCALE = 1e-150
"""The smallest standard deviation of weights, and one over the largest: its square is a number."""

# Directions and cells --------------------------------------------------------------------------

MARGIN = 1e-9
"""Unit vectors closer than this, or opposite up to this, share a line.

A sample with |v·x| below this, relative to ‖x‖, lies on the boundary of the cell of v, and a cell
of weights narrower than this is empty.
"""

LINEAR_PROGRAM = 1e-10
"""The least tolerance of a linear program, below the `MARGIN` that it must tell from zero."""

DEGENERATE = 1e-7
"""A direction counts as none where all inputs, on one scale, are smaller than this along it.

Rounding of 1e-16, seen on the scale of such a direction, reaches `MARGIN`.
"""

VANISHING = 1e-15
"""An input smaller than this in every feature, relative to the feature's largest value, is zero."""

# Neurons and their gates -----------------------------------------------------------------------

BOUNDARY = 1e-3
"""A neuron counts as on where z > BOUNDARY ‖w‖‖x‖. Nearer to zero, the sign of z says little."""

LEAST = 0.01
"""Neurons below this part of the largest weight of their layer are not counted."""

MENTIONED = 0.01
"""A sentence mentions a share, such as that of undecided activity, where it exceeds this."""

SLIDES = 0.02
"""A gate that is on for a share of the time between this and one minus this seems to slide.

`fixed_point` decides which gates do; this is its first guess.
"""

NEURON_RESTS = 1e-7
"""A neuron rests where it moves across its direction by less than this times its speed."""

SETTLING = ((0.05, 300), (0.2, 600), (0.02, 600), (0.002, 600))
"""Steps of the flow of neurons to rest, and how many of each are taken.

A step is the change of a neuron of unit length. The first are small, since where a neuron ends is
decided early; the second bring it there; the last two keep it at a boundary that it is pushed back
to from both sides.
"""

ALIGNED_COSINE = 0.9
"""A neuron is aligned from when the cosine to its final direction stays above this."""

COVERED = 0.9
"""The gates of at least this share of all neurons that learn must be known."""

GROWN = 2.0
"""Neurons cannot have aligned before their squared weights have grown by this factor."""

KEPT = 0.9
"""The weights of a gating produce its gates if its kept share is at least this."""

OUTRUN = 1.15
"""A gating is outrun if it learns later than this times the aligned gates.

It is not reached if they learn later than this times the gating. Times within the same factor
count as equal after a hand-over.
"""

TAKEOVER_STEP = 0.02
"""The learning rate of a ReLU network that takes over, times the largest growth rate."""

RELIABLE = 0.85
"""If the kept share of the aligned gates is below this, no constant gating is reliable.

This number is part of the definition of a contest's verdict, fixed before these 18 tasks
(docs/kept.md).
"""

ELBOW_GAIN = 0.5
"""At an elbow the discrepancy falls to at most this part of that of a single pathway."""

DESCRIBED = 0.75
"""A pattern is named by labels if the samples that they name overlap with its own by this part.

The overlap of two sets is the part of the samples in either of them that are in both.
"""

# Types of neurons ------------------------------------------------------------------------------

BEGUN = 1e-4
"""Neurons count as aligned when the loss has fallen by this share of its initial value."""

ENOUGH = 0.02
"""Types are enough if their outputs are this near to the wide limit, about as seeds are."""

LEADING = 0.01
"""A pattern leads if it and its images have at least this share of the strength."""

RARE = 0.05
"""A chance of lacking neurons that exceeds this is worth a warning."""

SMALL = 0.02
"""Events of a type are omitted while it has less than this share of the strength."""

FAINT = 0.005
"""Types that never have this share of the strength are omitted, except the first."""

BRIEF = 1.1
"""A state is brief if its end is less than this many times as late as its beginning."""

# The fall of the loss, and rest ----------------------------------------------------------------

FALLEN = 0.01
"""The loss has begun to fall once it has made this share of its fall.

Neurons must have aligned by then; leads mean nothing in this first part and in the last one; and
losses that are further apart than this part of the initial loss differ.
"""

FALLS = (BEGUN, 1e-3, FALLEN)
"""Falls of the loss, as shares, at which it is asked whether neurons have aligned."""

END = 0.1
"""The fall ends when the loss is down to this share of its initial value."""

COARSE = 0.5
"""Records are coarse where the loss falls by more than this part of L(0) from one to the next."""

AT_REST = 0.01
"""A curve is at rest from when on it stays within this part of its range of its end."""

FLAT = 1e-3
"""A plateau is where the loss falls by less than this part of L(0) per unit of time."""

RESTING = 1e-6
"""Weights that change by less than this part in a stretch of 8 / strength or longer are at rest.

What grows so slowly would not have grown e-fold at 10⁵ / strength, when the wait is over.
"""

LONGEST = 1e5
"""How long to wait for the loss to fall, in units of one over the largest growth rate."""

BLOCK_RESTS = 1e-4
"""A block rests where its weights change by less than this part of the largest in one step."""

ROUTE_RESTS = 1e-10
"""A route from one stationary point to another has come to rest at this speed ‖dW/dt‖ / ‖W‖."""

ELSEWHERE = 0.05
"""A network ends elsewhere if its end is further than this part of L(0) from that of an outcome."""

UNSTABLE = 2.0
"""Descent is not stable where the loss grows to more than this times its initial value."""

# Contests --------------------------------------------------------------------------------------

SCALE = 1e-3
"""The standard deviation of random weights if neither `start` nor `scale` is given."""

APART = 1e3
"""The factor between the two tolerances with which a race that rests is solved."""

LOOSE = 1e-10
"""With tolerances above this, the other one is smaller, otherwise larger."""

COMPARABLE = 0.5
"""t·s/s* is used as an estimate if a gating's growth rate s is at least this times s*."""

NEAR_RIVAL = 0.05
"""A rival that is later than the winner by less than this share is near."""

CHANGES = 0.5
"""The margin of a near rival changes where it does so by more than this part of the smaller one."""

CROSSOVER = 1e-9
"""A crossover is found to this part of the distance between two values of one parameter, …"""

CROSSOVERS = 1e-3
"""… and to this part of it where two parameters vary, so that there are many."""

MIXED = 1e-4
"""Modes are followed apart where hidden directions that they share matter by at most this part."""

LARGE_START = 0.1
"""A start is large where the loss of a race there is off by more than this part of the network's.

Its decaying half then matters, which the race leaves out: learning times are off, too.
"""

# Explanations of a network -----------------------------------------------------------------------

NEAR = 2.0
"""A model is near a network if its outputs are at most this many times as far away as a seed's."""

MISSED = 1.25
"""A model just misses being near if it is at most this many times as far away as that allows."""

SEVERAL = 3.0
"""A gating whose loss is more than this many times as far away as a seed's describes no network."""

LATE = 0.15
"""Nor does one whose half-time is further off than this part."""

# Learning from rewards -------------------------------------------------------------------------

STATIONARY = 1e-10
"""The largest entry of the velocity at a stationary point."""

NEWTON = 1e-3
"""The largest step of Newton, relative to the weights or 1, that a point found may be away."""

IMPLICIT_CHANGE = 0.1
"""The change of all weights that an implicit step towards rest is to make."""

IMPLICIT_STEP = (0.5, 1e6)
"""The shortest and the longest duration of such a step."""

FIRST_DAMPING = 1e-2
"""The damping μ of the first step to a root of the velocity."""

DAMPING = (1e-12, 1e6)
"""The least and the largest damping: with the least one, a step is one of Newton."""

FAMILY = 1e-2
"""How far, relative to the weights or 1, a family of stationary points must go on to be one."""

NEVER = 1e-6
"""A choice with a lower probability counts as never taken: its values then hardly learn."""

UNSEEN = 1e-10
"""The same among the stimuli of one input: its associations with that choice then hardly learn."""

ROUTE_START = 1e-5
"""How far from a stationary point, relative to its weights or 1, a route starts."""

ROUTE_ENDS = 1e5
"""The time by which a route must have come to rest."""

NEUTRAL = 1e-7
"""Eigenvalues with |λ| below this, relative to the largest or 1, count as zero."""

ARRIVED = 1e-3
"""The distance of values from a stationary point within which a route ends at it."""

SYMMETRIC = 1e-11
"""Velocities that differ by less than this, at random weights of size 1, are the same."""

CROSSING = 1e-9
"""Values that differ by this part of one are on the two sides of where they cross."""

JUMP = 1e-3
"""A policy jumps where probabilities differ by more than this across a `CROSSING`."""

CERTAIN = 1e-5
"""Probabilities add up to one where their sum is nearer to it than this."""

MODERATE = 1e6
"""Weights of animals that did not diverge are below this."""

# Starts of networks with shared weights ----------------------------------------------------------

NOISY_GROWTH = 2.0
"""Random shared weights may add at most this many times the growth that a start knows of."""

ALONE = 5e-3
"""Blocks with shared weights are solved one by one where that is off by at most this part of L(0).

It is the default of an argument of `Race.solve`, whose result states by how much it is off.
"""

# Learning rates found from checkpoints ---------------------------------------------------------

REPLAYS = 0.1
"""A replayed interval may differ by this part of the change of the weights over it."""

TELLS = 1.25
"""Checkpoints tell a rate where one that differs by this factor does not lead to the next one."""

SAME_RATE = 0.02
"""Two rates whose ratio differs from one by less than this count as the same."""

# Blocks and their solutions ---------------------------------------------------------------------

REACHED = 1e-8
"""A hidden direction that learning reaches from others with less than this part is left out.

What goes there and comes back is the square of it, which is rounding.
"""

NOT_BEGUN = 2.0**-20
"""At the shortest half-time of a mode times this, no mode is taken to have begun, …"""

ALL_LEARNED = 2.0**10
"""… and at the longest half-time times this, all are taken to have learned."""

SIZE_FLOOR = 1e-6
"""A direction smaller than this, relative to its node, is judged as if it had this size.

Rotating data leaves rounding of about 1e-15 of a node in every direction; relative to this floor it
is 1e-9.
"""

NO_MODE = 1e-10
"""A singular value of correlations below this, relative to the largest, is rounding."""

UNREACHED = 1e-14
"""A criterion this close to the final loss, relative to the initial loss, is never reached."""

CONVERGED = 1e-8
"""Newton's method stops at a step below this: its error is the square, which is rounding."""

ZERO_TARGETS = 0.2
"""Targets of an output that are zero on at most this share of the samples need no remark."""

GRADED = 1e-3
"""If sizes of directions at one node differ by more than this factor, Jacobi rotations are used."""

COUPLED = 100
"""A direction joins a block if its coupling exceeds this many times the rounding error."""

LEAST_ATOL = 1e-17
"""The least absolute tolerance of a compiled flow, relative to the weights that are learned.

With a smaller one, rounding of the largest weights would refuse every step.
"""

RTOL = 1e-11
"""The relative tolerance of a step of a block's flow, if none is asked for."""

PLATEAU = 1e-3
"""The absolute tolerance of a step, relative to the start and to the relative tolerance.

It is far below the relative one, so that variables are followed accurately while they are small,
on every plateau.
"""

PICTURE = 1e-8
"""The relative tolerance of a step that is enough for a picture, or for a half-time."""

LAST_DIGIT = 1e-16
"""The error of any variable caused by rounding of the largest one, relative to the largest."""

CLEAR = 0.2
"""A stage ends where rounding is still this much smaller than the absolute tolerance."""

STAGE = 20.0
"""The factor by which a state may always grow in a stage, before tolerances are set again."""

STRETCH = 3
"""A stage of the flow lasts at most this many times as long as all stages before it."""

NEARBY = 1e-5
"""The step, relative to the state's size, of the finite difference of the velocity."""

RANGE = 1e9
"""The largest ratio of sizes at one node for which float64 still resolves both directions.

The ratio of their squares stays within the precision that remains after a few hundred operations.
"""

GAPS = (1e-4, 1e-7)
"""Relative gaps that separate eigenvalues; the second splits only what the first left together."""

WIDE_GAPS = (0.1, 0.01, 1e-3, 1e-4, 1e-7)
"""The gaps for approximate reductions, where copies differ slightly: each gives a candidate."""

POLISHED = 100.0
"""Blocks coupled by up to this many times the tolerance are tried again after polishing."""

OUTSIDE = 0.5
"""A unit vector starts a new block if more than this of it lies outside the blocks found."""

PIVOT = 0.1
"""The pivot of a row is its first entry above this, relative to the largest."""

LEARNED_LOGIT = 36.0
"""The largest |w| that matters at the end: 1/(1 + e^−36) is 1 in double precision."""

SMALL_START = 1e-3
"""The small equal start of a page, and of the closed forms that are listed, if none is given."""

E_FOLDS = 3.0
"""Modes that are solved for are followed for this many more times one over their growth rate, …"""

FALL_DONE = 1e-3
"""… and must have all but this part of their fall behind them in the last quarter of that time."""

# Runs ------------------------------------------------------------------------------------------

FLOW_RTOL = {"float64": 1e-8, "float32": 1e-4}
"""Relative tolerance of a step of a flow by precision: far below what a plot or table shows."""

SENT = 1e-8
"""The same of races that a page shows: their curves are sent with six digits."""

CONFIRMS = 0.5
"""Where less of the loss has fallen than this, a run does not tell how good a prediction is."""

LIVE_SHARE = 0.05
"""At most this part of the time of a training is spent on watching it, if nothing else is said."""

DENSE = 1.2
"""At first, the number of the step grows by this factor from one watched moment to the next."""

PATTERNS_HOLD = 0.9
"""Patterns are counted until they hold this part of the weight of the neurons."""

# Pictures ---------------------------------------------------------------------------------------

LONGER = 1.6
"""Curves are drawn for this many times as long as the slowest candidate needs."""

SETTLED = 0.01
"""A loss within this part of its fall from the end has settled; a page draws it until then."""

STACKED = 1e-3
"""Parts of the targets are stacked in a picture if none is more negative than this."""

PROMINENT = 1 / 3
"""Items and outputs are named if they are at least this part of the largest of their mode."""

PAGE_RESTS = 4
"""After so many doublings of the time without a change, the loss of a page has settled."""

PAGE_TIMES = 200
"""A page is compared with another solution, and looked at for rest, at so many times."""

DEPARTS = 1e-3
"""A page says by how much another solution departs from its curves above this part of L(0)."""
