/* heirlock's lock: take, refuse, guard, reclaim, destroy, release. README.md says which function each part models, and
 * what the switches break. One statement, or one atomic or d_step, is one system call; SIGKILL comes between any two.
 */

#include "kernel.pml"

#ifdef LIVE
#define PLAIN                   /* whoever keeps trying makes whole attempts */
#endif

#define REMOVED 1               /* answers of destroy */
#define CHANGED 2
#define REFUSED 3
#define OURS    1               /* answers of create */
#define HELD    2

#define WHO 64 + me             /* in what a replay prints: A, B, C do something with x, the lock, or g, the guard */
#define X(n) (n == LOCK -> 'x' : 'g')

/* May the open file be removed? The bytes of a record never change and death is final, so to read it and to ask the
 * kernel is one step. A guard goes as soon as its flock was had, whoever made it.
 */
#if defined(AGE) || defined(RELEASED)
#define MAY_LOCK true           /* what the owner's process does is not asked, or cannot be seen */
#else
#define MAY_LOCK (rec[fd[me]] == DEAD)
#endif
#if defined(NO_FLOCK) || defined(ANY_VIEW)
#define MAY_GUARD (rec[fd[me]] == DEAD)
#elif defined(TWO_VIEWS)
#define MAY_GUARD (view[fd[me]] == (me & 1))    /* guard.go elsewhere: from its own view only */
#else
#define MAY_GUARD true
#endif

/* birth.go create, kernel Publish: link, and then look what the name leads to. mine and all count who succeeded. */
inline create(n, f, mine, all) {
    do
    :: if
       :: f == 0 -> bear(f)
       :: else                  /* a waiter's early file */
       fi;
       atomic {
           if
           :: name[n] == 0 -> name[n] = f; printf("%c linkat(%c) = 0, inode %d\n", WHO, X(n), f)
           :: else -> printf("%c linkat(%c) = EEXIST\n", WHO, X(n))
           fi
       };
       atomic {
           if
           :: name[n] == f -> printf("%c fstatat(%c) = %d: ours\n", WHO, X(n), f); ans = OURS; won(mine, all); break
           :: name[n] != f && name[n] != 0 -> ans = HELD
           :: name[n] == 0      /* ErrChanging: once more */
           fi
       };
       if
       :: true -> close(f)
#ifdef EARLY
       :: ans == HELD           /* giveBack: the next attempt will link it */
#endif
       fi;
       if
       :: atomic { ans == HELD -> break }
       :: else
       fi
    od
}

/* reclaim.go destroy: one sequence on one descriptor. */
inline destroy(n, may) {
    do
    :: atomic {
           seen = name[n]; printf("%c fstatat(%c) = %d\n", WHO, X(n), seen);
           if :: seen == 0 -> ans = CHANGED; break :: else fi
       };
       atomic {
           if
           :: name[n] == seen -> fd[me] = seen; seen = 0; printf("%c open(%c), fstat = %d\n", WHO, X(n), fd[me])
           :: else -> seen = 0; ans = CHANGED; break
           fi
       };
#ifndef NO_FLOCK
       do                       /* lockPatiently */
       :: atomic {
              LK(me, fd[me]) == 0 -> LK(me, fd[me]) = me; printf("%c flock(%d) = 0\n", WHO, fd[me]); break
          }
       :: atomic { LK(me, fd[me]) != 0 -> printf("%c flock(%d) = EWOULDBLOCK\n", WHO, fd[me]) };
          atomic {
              if
              :: name[n] != fd[me] -> ans = CHANGED; break
              :: name[n] == fd[me] -> ans = REFUSED; break
              :: name[n] == fd[me]              /* try again, for 100 ms */
              fi
          }
       od;
#endif
       atomic {
           if
           :: ans == 0 && may -> printf("%c read, judge(%d): may go\n", WHO, fd[me])
           :: ans == 0 && !may -> ans = REFUSED; break
           :: ans != 0 -> break
           fi
       };
#ifdef NO_DESCRIPTOR
       atomic { seen = fd[me]; printf("%c close(%d)\n", WHO, seen) }; close(fd[me]);
#define FOUND seen
#else
#define FOUND fd[me]
#endif
       atomic {
           if
           :: name[n] == FOUND -> printf("%c fstatat(%c) = %d: the same\n", WHO, X(n), FOUND)
           :: else -> ans = CHANGED; break
           fi
       };
       atomic {
           if
           :: name[n] == 0 -> ans = CHANGED
           :: else -> printf("%c unlink(%c), inode %d\n", WHO, X(n), name[n]); unlink(n); ans = REMOVED
           fi;
           break
       }
    od;
    atomic { seen = 0; if :: fd[me] != 0 -> printf("%c close(%d)\n", WHO, fd[me]); close(fd[me]) :: else fi }
}

/* lock.go remove, and the close behind it. */
inline giveUp(n, f, mine, all) {
    atomic {
        mine = 0; all--;
        lost = (name[n] != f);
        printf("%c fstatat(%c) = %d, ours is %d\n", WHO, X(n), name[n], f)
    };
#ifdef CLOSE_FIRST
    close(f);
#endif
    atomic {
        if
        :: !lost && name[n] != 0 -> printf("%c unlink(%c), inode %d\n", WHO, X(n), name[n]); unlink(n)
        :: else
        fi;
        lost = 0
    };
    atomic { if :: f != 0 -> printf("%c close(%d)\n", WHO, f); close(f) :: else fi }
}

proctype contender(byte me) {
    byte seen, ans;
    bool lost;

life:
    {
        skip;
again:                          /* reclaim.go attempt */
        ans = 0;
        if
        :: atomic {
               seen = name[LOCK];
               if :: seen == 0 -> goto take :: else fi
           };
           atomic {             /* target.go diagnose */
               if
               :: name[LOCK] == seen -> fd[me] = seen; seen = 0
               :: else -> seen = 0; goto again
               fi
           };
           atomic {
               if
               :: MAY_LOCK -> ans = REMOVED
               :: else -> ans = REFUSED
               fi
           };
           close(fd[me]);
           if
           :: atomic { ans == REMOVED -> ans = 0; goto inherit }
           :: atomic { ans == REFUSED -> goto again }   /* and wait, or have been told no */
           fi
#ifndef PLAIN
        :: goto take            /* wake.go takeFreed: an event said that the name is free */
        :: goto inherit         /* wake.go inheritNow: an event said that the owner is gone */
        :: goto clear           /* remove.go reclaimGuardOnly */
#endif
#ifdef EARLY
        :: own[me] == 0 -> bear(own[me]); goto again    /* early.go bearEarly */
#endif
        fi;

take:
        create(LOCK, own[me], holder[me], holders);
        if
        :: ans == OURS -> goto hold
        :: else -> goto again
        fi;

inherit:                        /* reclaim.go inherit, guard.go underGuard */
        ans = 0;
#ifndef NO_GUARD
        create(GUARD, grd[me], below[me], under);
        if
        :: ans == OURS -> ans = 0
        :: else -> goto clear
        fi;
#endif
guarded:
        destroy(LOCK, MAY_LOCK);
        if
        :: ans == REMOVED -> ans = 0; create(LOCK, own[me], holder[me], holders)
#ifndef PLAIN
        :: ans == REMOVED       /* remove.go reclaimOnce takes nothing */
#endif
        :: else
        fi;
#ifndef NO_GUARD
        giveUp(GUARD, grd[me], below[me], under);
#endif
        if
        :: holder[me] -> goto hold
        :: else -> goto again
        fi;

clear:                          /* guard.go clearGuard */
        ans = 0;
#if defined(NO_GUARD) || defined(NO_CLEARING)
        goto again;
#elif defined(GUARD_TAKEN_OVER)
        atomic { if :: name[GUARD] == 0 -> goto again :: else -> fd[me] = name[GUARD] fi };
        atomic { if :: rec[fd[me]] == DEAD -> printf("%c read, judge(%d): dead\n", WHO, fd[me]); ans = REMOVED :: else fi };
        close(fd[me]);
        if
        :: ans == REMOVED -> ans = 0
        :: else -> goto again
        fi;
        bear(grd[me]);
        atomic {
            printf("%c rename(g), inode %d, over %d\n", WHO, grd[me], name[GUARD]);
            tmp = name[GUARD]; name[GUARD] = grd[me]; reap(tmp); tmp = 0; won(below[me], under)
        };
        goto guarded;
#else
        destroy(GUARD, MAY_GUARD);
        goto again;
#endif

hold:
        ans = 0;
        if
        :: giveUp(LOCK, own[me], holder[me], holders)        /* lock.go Release */
#ifdef EXECS
        :: close(own[me]);              /* Options.Exec: the flock goes, the process goes on */
           atomic { die(me) }           /* and ends; its name stays */
#endif
        fi;
        goto again
    } unless {
        atomic { killed[me] -> killed[me] = 0; seen = 0; ans = 0; lost = 0 }
    };
    if
    :: goto life
#ifdef LIVE
    :: me == 2                  /* never comes back: the other one is enough */
#endif
    fi
}

/* What lies there at the start: nothing, or what dead owners left. */
init {
    atomic {
        if
        :: true
        :: name[LOCK] = 1; rec[1] = DEAD
        fi;
        if
        :: true
#ifndef NO_STALE_GUARD
        :: name[GUARD] = 2; rec[2] = DEAD
#ifdef TWO_VIEWS
        :: name[GUARD] = 2; rec[2] = DEAD; view[2] = 1
#endif
#endif
        fi;
        run contender(1); run contender(2);
#if N > 2
        run contender(3)
#endif
    }
}

#ifdef LIVE
#define stale (name[LOCK] != 0 && rec[name[LOCK]] == DEAD)
ltl inherited { [] (stale -> <> (holders > 0)) }
#endif
