/* The kernel, as far as the lock rests on it: names, inodes, open descriptors, flock, and the death of a process.
 *
 * An inode is its number. A number is free, and given to the next file, as soon as no name and no descriptor is left. All
 * of an inode's state is in rec and lk, so that a recycled number is really another file.
 */

#ifndef N
#define N 2                     /* contenders; they are numbered from 1 */
#endif

#define DEAD  (N + 1)           /* in rec: the owner is a process instance that is gone */
#define CHILD (N + 2)           /* in lk: a command that outlives the wrapper it had the descriptor from */
#define LOCK  0
#define GUARD 1
#ifdef EARLY
#define NI    (3 + 3 * N)
#else
#define NI    (3 + 2 * N)       /* numbers 1 … NI-1: two names, and two files that each contender has open beside them */
#endif

byte name[2];                   /* the inode behind a name, 0: no such name */
byte rec[NI];                   /* whose record it holds, 0: a free number */

byte own[N + 1];                /* descriptors of a contender, 0: none. Its lock file, with or without its name */
byte grd[N + 1];                /* its guard file */
byte fd[N + 1];                 /* what it has opened to look at or to remove */
byte child;                     /* the lock file that an orphaned command has open */

/* flock, by open file description; a contender never has two with a flock of one inode. In two views of one directory
 * (overlay and its upper directory, two FUSE mounts) the kernel has two inodes for one file, and each its own flock.
 */
#ifdef TWO_VIEWS
byte lk[2 * NI];
bool view[NI];                  /* in which a file was made, as its record says */
#define LK(p, i) lk[((p) & 1) * NI + (i)]
#define UNLOCK(i) lk[i] = 0; lk[NI + (i)] = 0; view[i] = 0
#define DROP(p, i) if :: lk[((p) & 1) * NI + (i)] == p -> lk[((p) & 1) * NI + (i)] = 0 :: else fi
#else
byte lk[NI];
#define LK(p, i) lk[i]
#define UNLOCK(i) lk[i] = 0
#define DROP(p, i) if :: lk[i] == p -> lk[i] = 0 :: else fi
#endif

#if N == 2
#define OPEN(i) (own[1] == i || grd[1] == i || fd[1] == i || own[2] == i || grd[2] == i || fd[2] == i)
#else
#define OPEN(i) (own[1] == i || grd[1] == i || fd[1] == i || own[2] == i || grd[2] == i || fd[2] == i || \
                 own[3] == i || grd[3] == i || fd[3] == i)
#endif
#define IN_USE(i) (name[LOCK] == i || name[GUARD] == i || child == i || OPEN(i))

/* What the properties speak of; nobody decides anything by it. */
byte holders;                   /* how many believe to hold the lock, and are alive */
byte under;                     /* how many work under the guard, and are alive */
bool holder[N + 1], below[N + 1];
bool killed[N + 1];             /* SIGKILL was delivered; the contender has not begun its next life */

byte tmp, at;                   /* scratch inside one step, 0 between two */

#define LIVES(i) (rec[i] != 0 && rec[i] != DEAD)

inline reap(i) {                /* the last name or descriptor may be gone */
    if
    :: i != 0 && !IN_USE(i) -> rec[i] = 0; UNLOCK(i)
    :: else
    fi
}

/* A file of ours is born without a name, with its flock and its record: bear, flock and fill are one step, because
 * nobody else can see it and a death leaves nothing. Any free number may be its own, the one just freed too.
 */
inline bear(f) {
    atomic {
        if
        :: rec[1] == 0 -> f = 1
        :: rec[2] == 0 -> f = 2
#ifdef ANY_NUMBER
        :: rec[3] == 0 -> f = 3
        :: rec[4] == 0 -> f = 4
        :: rec[5] == 0 -> f = 5
        :: rec[6] == 0 -> f = 6
#if N > 2
        :: rec[7] == 0 -> f = 7
        :: rec[8] == 0 -> f = 8
#endif
#else
        :: else -> f = 3; do :: f < NI && rec[f] != 0 -> f++ :: else -> break od
#endif
        fi;
        assert(f < NI);
        rec[f] = me; LK(me, f) = me;
#ifdef TWO_VIEWS
        view[f] = me & 1
#endif
    }
}

inline close(f) {
    d_step { DROP(me, f); tmp = f; f = 0; reap(tmp); tmp = 0 }
}

#ifdef ONLY_HOLDERS
#define check(e) skip
#else
#define check(e) assert(e)
#endif

inline won(mine, all) {
    mine = 1; all++;
    assert(holders <= 1);       /* two holders */
    check(under <= 1)           /* two under the guard */
}

/* unlinkat. Only a file of one's own, or of the dead, may ever go: not a live owner's, not one whose command works on. */
inline unlink(n) {
    tmp = name[n];
    check(!(LIVES(tmp) && rec[tmp] != me) && !(tmp != 0 && tmp == child)); /* removed a live owner's file */
    name[n] = 0; reap(tmp); tmp = 0
}

/* A process ends: its descriptors close, its flocks go, its names stay, and its records are of a dead instance from now
 * on. A wrapper may leave a command behind that has the lock's descriptor, works on, and so still holds the lock.
 */
inline die(p) {
    if
#ifdef ORPHANS
    :: holder[p] && own[p] != 0 && child == 0 -> child = own[p]; LK(p, child) = CHILD
#endif
    :: holders = holders - holder[p]
    fi;
    d_step {
        holder[p] = 0; under = under - below[p]; below[p] = 0;
        own[p] = 0; grd[p] = 0; fd[p] = 0;
        at = 1;
        do
        :: at < NI -> DROP(p, at); if :: rec[at] == p -> rec[at] = DEAD :: else fi; reap(at); at++
        :: else -> break
        od;
        at = 0
    }
}

/* SIGKILL, between any two steps of whoever. */
active proctype killer() {
#ifdef KILLS
    byte kills = KILLS;
#define MAY_KILL(p) (kills > 0 && !killed[p])
#define SPEND kills--
#else
#define MAY_KILL(p) !killed[p]  /* nothing counts them, so without a bound the states stay finite */
#define SPEND skip
#endif
    do
    :: atomic { MAY_KILL(1) -> printf("A is killed\n"); SPEND; die(1); killed[1] = 1 }
    :: atomic { MAY_KILL(2) -> printf("B is killed\n"); SPEND; die(2); killed[2] = 1 }
#if N > 2
    :: atomic { MAY_KILL(3) -> printf("C is killed\n"); SPEND; die(3); killed[3] = 1 }
#endif
    od
}

#ifdef ORPHANS
/* The command of a wrapper that was killed: it works on, and ends. */
active proctype orphan() {
    do
    :: atomic {
           child != 0 -> holders--; UNLOCK(child); tmp = child; child = 0; reap(tmp); tmp = 0
       }
    od
}
#endif
